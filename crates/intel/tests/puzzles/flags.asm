// Flags: a predicated write keeps the old value; the opposite predicate is not what is read. Lanes 16 to 31 have flag
// bits of their own.
// from 4 2 3
// from 5 0 3
// from 6 1
// from 7 0 1
// from 8 0 1
cmp (16|M0) (lt)f0.0 null<1>:d r1.0<1;1,0>:d r2.0<1;1,0>:d
cmp (16|M16) (lt)f0.0 null<1>:d r3.0<1;1,0>:d r4.0<1;1,0>:d
mov (16|M0) r10.0<1>:d r5.0<1;1,0>:d
(f0.0) mov (16|M0) r10.0<1>:d r6.0<1;1,0>:d
mov (16|M0) r11.0<1>:d r10.0<1;1,0>:d
(f0.0) mov (16|M0) r12.0<1>:d r10.0<1;1,0>:d
(f0.0) mov (16|M16) r13.0<1>:d r7.0<1;1,0>:d
(W) mov (1|M0) r14.0<1>:ud f0.0<0;1,0>:ud
(f0.0) sel (32|M0) r16.0<1>:d r18.0<1;1,0>:d r22.0<1;1,0>:d
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
