// A load writes several registers; a store reads the address and the data, in two parts.
// wait 3 $0.dst must 2
// wait 4 A@1 must 0 must 1
// wait 5 $1.src must 4
// from 2 0 1
// from 4 0 1 2
// from 6 2
// from 7
// stored 4 2
mov (16|M0) r10.0<1>:uq r1.0<1;1,0>:uq
mov (16|M16) r12.0<1>:uq r1.0<1;1,0>:uq
send.ugm (32|M0) r20 r10 null:0 0x0 0x08602580 {$0}
sync.nop null {$0.dst}
send.ugm (32|M0) null r10 r20:6 0x0 0x08002584 {A@1,$1}
mov (16|M0) r10.0<1>:uq r2.0<1;1,0>:uq {$1.src}
mov (16|M0) r6.0<1>:f r25.0<1;1,0>:f
mov (16|M0) r6.0<1>:f r26.0<1;1,0>:f
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
