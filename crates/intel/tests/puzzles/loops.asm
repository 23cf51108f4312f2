// A loop: the load at its end is what its head waits for, or the one before the loop.
// wait 1 $4.dst may 0 may 3
// wait 4 F@1 must 1 must 2 may 4
// from 1 0 1 3
// from 5 4
send.ugm (1|M0) r20 r10 null:0 0x0 0x0218D580 {$4}
HEAD:
add (16|M0) r30.0<1>:f r30.0<1;1,0>:f r20.0<1;1,0>:f {$4.dst}
add (16|M0) r31.0<1>:f r5.0<1;1,0>:f r6.0<1;1,0>:f
send.ugm (1|M0) r20 r10 null:0 0x0 0x0218D580 {$4}
cmp (16|M0) (lt)f0.0 null<1>:f r31.0<1;1,0>:f r7.0<1;1,0>:f {F@1}
(W&f0.0.any) jmpi HEAD
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
