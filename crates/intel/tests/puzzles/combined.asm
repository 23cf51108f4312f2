// Combined scoreboard bits: a send with a distance sets its token, others wait for both.
// wait 1 I@1 must 0
// wait 2 F@1
// wait 4 A@1 must 3
// wait 4 $1.dst must 1
// wait 5 $2.src must 2
// wait 6 $2.dst must 2
// from 1 0
// from 2 0
// from 4 1 3
// from 6 2 4
(W) add (1|M0) r10.0<1>:d r1.0<0;1,0>:d 64:w
send.ugm (1|M0) r20 r10 null:0 0x0 0x0218D580 {I@1,$1}
send.ugm (1|M0) r30 r10 null:0 0x0 0x0218D580 {F@1,$2}
add (16|M0) r12.0<1>:f r2.0<1;1,0>:f r3.0<1;1,0>:f
add (16|M0) r13.0<1>:f r12.0<1;1,0>:f r20.0<1;1,0>:f {A@1,$1.dst}
mov (1|M0) r10.0<1>:f r3.0<0;1,0>:f {$2.src}
add (16|M0) r14.0<1>:f r13.0<1;1,0>:f r30.0<1;1,0>:f {$2.dst}
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
