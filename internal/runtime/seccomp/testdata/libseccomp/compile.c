/* Compiles a filter with libseccomp, as runc does, and writes it to standard
 * output. Standard input has a line for the default and one for each rule:
 *   <audit token of the architecture> <default action>
 *   <call> <action> <number of conditions> {<argument> <operator> <value> <value>}
 * Calls that libseccomp does not know are named on standard error. */
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void check(int rc, const char *what)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %d\n", what, rc);
		exit(1);
	}
}

int main(void)
{
	uint32_t arch, action;
	char name[128];
	unsigned count;
	if (scanf("%" SCNu32 " %" SCNu32, &arch, &action) != 2)
		return 2;
	scmp_filter_ctx ctx = seccomp_init(action);
	if (arch != seccomp_arch_native()) {
		check(seccomp_arch_remove(ctx, seccomp_arch_native()), "arch_remove");
		check(seccomp_arch_add(ctx, arch), "arch_add");
	}
	check(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "attr_set");
	while (scanf("%127s %" SCNu32 " %u", name, &action, &count) == 3) {
		struct scmp_arg_cmp args[6];
		for (unsigned i = 0; i < count && i < 6; i++)
			if (scanf("%u %u %" SCNu64 " %" SCNu64, &args[i].arg, (unsigned *)&args[i].op, &args[i].datum_a, &args[i].datum_b) != 4)
				return 2;
		int nr = seccomp_syscall_resolve_name(name);
		if (nr == __NR_SCMP_ERROR) {
			fprintf(stderr, "unknown %s\n", name);
			continue;
		}
		check(seccomp_rule_add_array(ctx, action, nr, count, args), name);
	}
	check(seccomp_export_bpf(ctx, STDOUT_FILENO), "export_bpf");
	return 0;
}
