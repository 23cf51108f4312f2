/* libroctracer64.so.4, which Debian does not have. CuPy and JAX are linked with it and need it only for their own
   profilers: each function says that it failed. */
#define ROCTRACER_STATUS_ERROR (-1)
#define FUNCTION(name) int name(void) { return ROCTRACER_STATUS_ERROR; }

FUNCTION(roctracer_default_pool_expl)
FUNCTION(roctracer_disable_domain_activity)
FUNCTION(roctracer_disable_domain_callback)
FUNCTION(roctracer_disable_op_activity)
FUNCTION(roctracer_disable_op_callback)
FUNCTION(roctracer_enable_domain_activity_expl)
FUNCTION(roctracer_enable_domain_callback)
FUNCTION(roctracer_enable_op_activity_expl)
FUNCTION(roctracer_enable_op_callback)
FUNCTION(roctracer_flush_activity_expl)
FUNCTION(roctracer_get_timestamp)
FUNCTION(roctracer_next_record)
FUNCTION(roctracer_open_pool_expl)

const char *roctracer_error_string(void) { return "this libroctracer64 traces nothing"; }
const char *roctracer_op_string(void) { return ""; }
void roctracer_set_properties(void) {}
void roctracer_start(void) {}
void roctracer_stop(void) {}
