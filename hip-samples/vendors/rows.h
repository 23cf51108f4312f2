/* One kernel for GPUs of three vendors: each thread adds up what a row of indices points to, and a workgroup finds the
   largest of its sums. What differs between the languages is defined by the file that includes this. */

KERNEL void rows(GLOBAL const int *begins, GLOBAL const int *columns, GLOBAL const float *values, GLOBAL float *largest,
                 int count) {
    SHARED(float, sums, 256);
    int row = GLOBAL_ID;
    int lane = LOCAL_ID;
    float sum = 0.0f;
    if (row < count) {
        for (int at = begins[row]; at < begins[row + 1]; at++) {
            int column = columns[at];
            float value = values[column];
            sum += SQRT(value);
        }
    }
    sums[lane] = sum;
    BARRIER;
    for (int half_ = 128; half_ > 0; half_ /= 2) {
        if (lane < half_) {
            float other = sums[lane + half_];
            sums[lane] = MAX(sums[lane], other);
        }
        BARRIER;
    }
    if (lane == 0)
        largest[GROUP_ID] = sums[0];
}
