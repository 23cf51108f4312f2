/* MIGraphX: a graph that it compiles for the GPU, relu(x w + b), against loops on the CPU. */
#include <math.h>
#include <migraphx/migraphx.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 24, INNER = 32, COLUMNS = 40 };

static void must(migraphx_status status, const char *call) {
    if (status == migraphx_status_success) return;
    printf("%s returned %d\n", call, status);
    exit(2);
}
#define MUST(call) must(call, #call)

static migraphx_module_t module;
static migraphx_program_parameters_t parameters;

static void fill(float *values, int count) {
    for (int i = 0; i < count; ++i) values[i] = (float)(rand() % 2001 - 1000) / 1000;
}

/* A parameter of the graph, with its values. */
static migraphx_instruction_t parameter(const char *name, float *values, size_t rows, size_t columns) {
    size_t lengths[2] = {rows, columns};
    migraphx_shape_t shape;
    migraphx_argument_t argument;
    migraphx_instruction_t result;
    fill(values, (int)(rows * columns));
    MUST(migraphx_shape_create(&shape, migraphx_shape_float_type, lengths, 2));
    MUST(migraphx_module_add_parameter(&result, module, name, shape));
    MUST(migraphx_argument_create(&argument, shape, values));
    MUST(migraphx_program_parameters_add(parameters, name, argument));
    return result;
}

static migraphx_instruction_t operation(const char *name, migraphx_instruction_t a, migraphx_instruction_t b) {
    const_migraphx_instruction_t arguments[2] = {a, b};
    migraphx_operation_t what;
    migraphx_instructions_t list;
    migraphx_instruction_t result;
    MUST(migraphx_operation_create(&what, name, NULL));
    MUST(migraphx_instructions_create(&list, arguments, b ? 2 : 1));
    MUST(migraphx_module_add_instruction(&result, module, what, list));
    return result;
}

int main(void) {
    static float x[ROWS * INNER], w[INNER * COLUMNS], b[ROWS * COLUMNS];
    migraphx_program_t program;
    migraphx_target_t gpu;
    migraphx_compile_options_t options;
    migraphx_arguments_t results;
    const_migraphx_argument_t result;
    char *bytes;
    MUST(migraphx_program_create(&program));
    MUST(migraphx_program_get_main_module(&module, program));
    MUST(migraphx_program_parameters_create(&parameters));
    migraphx_instruction_t product =
        operation("dot", parameter("x", x, ROWS, INNER), parameter("w", w, INNER, COLUMNS));
    operation("relu", operation("add", product, parameter("b", b, ROWS, COLUMNS)), NULL);
    MUST(migraphx_target_create(&gpu, "gpu"));
    MUST(migraphx_compile_options_create(&options));
    MUST(migraphx_compile_options_set_offload_copy(options, true));
    MUST(migraphx_program_compile(program, gpu, options));
    MUST(migraphx_program_run(&results, program, parameters));
    MUST(migraphx_arguments_get(&result, results, 0));
    MUST(migraphx_argument_buffer(&bytes, result));
    const float *found = (const float *)bytes;
    double worst = 0;
    for (int row = 0; row < ROWS; ++row) {
        for (int column = 0; column < COLUMNS; ++column) {
            double sum = b[row * COLUMNS + column];
            for (int i = 0; i < INNER; ++i) sum += (double)x[row * INNER + i] * w[i * COLUMNS + column];
            const double error = fabs(fmax(sum, 0) - found[row * COLUMNS + column]);
            if (!(error <= worst)) worst = error;
        }
    }
    printf("relu(x w + b): %s, largest error %.3g\n", worst < 1e-4 ? "PASS" : "WRONG", worst);
    return !(worst < 1e-4);
}
