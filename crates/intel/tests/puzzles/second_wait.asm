// A sync.nop carries a second wait of the next instruction. sync.allwr and sync.allrd wait for what a mask names, or for
// all.
// wait 2 $5.dst must 0
// wait 3 $6.dst must 1
// wait 6 $8.src must 5
// wait 7 $7.dst must 4
// wait 7 $8.dst must 5
// from 3 0 1
send.ugm (1|M0) r20 r10 null:0 0x0 0x0218D580 {$5}
send.ugm (1|M0) r21 r11 null:0 0x0 0x0218D580 {$6}
sync.nop null {$5.dst}
add (16|M0) r22.0<1>:f r20.0<1;1,0>:f r21.0<1;1,0>:f {$6.dst}
send.ugm (1|M0) r23 r10 null:0 0x0 0x0218D580 {$7}
send.ugm (1|M0) r24 r11 null:0 0x0 0x0218D580 {$8}
sync.allrd 0x100
sync.allwr null
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
