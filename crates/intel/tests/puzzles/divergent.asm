// goto and join: what one side loads may be in flight where both meet, and what it writes may be read there.
// wait 5 $9.dst may 2
// from 1 0
// from 5 2 4
// target 1 3 3
// target 3 5
cmp (16|M0) (lt)f0.0 null<1>:d r1.0<1;1,0>:d r2.0<1;1,0>:d
(~f0.0) goto (16|M0) ELSE ELSE
send.ugm (1|M0) r20 r10 null:0 0x0 0x0218D580 {$9}
ELSE:
join (16|M0) END
(f0.0) mov (16|M0) r20.0<1>:f r3.0<1;1,0>:f
END:
add (16|M0) r21.0<1>:f r20.0<1;1,0>:f r4.0<1;1,0>:f {$9.dst}
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
