// Accumulators: a product has 8 bytes a lane; carries and multiply-accumulate name none.
// from 1 0
// from 2 1
// from 4 3
// from 6 5
// from 8 5
mul (16|M0) acc0.0<1>:d r1.0<1;1,0>:d r2.0<2;1,0>:uw
macl (16|M0) r10.0<1>:d r1.0<1;1,0>:d r2.0<1;1,0>:d
mach (16|M0) r11.0<1>:d r10.0<1;1,0>:d r2.0<1;1,0>:d
addc (16|M0) r12.0<1>:ud r3.0<1;1,0>:ud r4.0<1;1,0>:ud
add (16|M0) r13.0<1>:ud acc0.0<1;1,0>:ud r5.0<1;1,0>:ud
mul (16|M0) acc2.0<1>:f r5.0<1;1,0>:f r6.0<1;1,0>:f
mad (16|M0) acc3.0<1>:f r7.0<1;0>:f r8.0<1;0>:f acc2.0<1>:f
mov (16|M0) r1.0<1>:f r7.0<1;1,0>:f
mov (16|M0) r14.0<1>:f acc2.0<1;1,0>:f
(W) send.gtwy (1|M0) null r112 null:0 0x0 0x02000010 {EOT}
