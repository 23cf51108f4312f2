// A token that is in flight is waited for before it is set again; one that is not is not.
// wait 1 $3 must 0
// wait 3 $3.dst must 1
// from 2
// from 3 0
// from 4 1
send.ugm (1|M0) r20 r10 null:0 0x0 0x0218D580 {$3}
send.ugm (1|M0) r30 r11 null:0 0x0 0x0218D580 {$3}
mov (16|M0) r41.0<1>:f r2.0<1;1,0>:f
add (16|M0) r40.0<1>:f r20.0<1;1,0>:f r2.0<1;1,0>:f {$3.dst}
add (16|M0) r42.0<1>:f r30.0<1;1,0>:f r2.0<1;1,0>:f
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
