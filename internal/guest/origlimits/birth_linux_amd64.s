#include "textflag.h"

// func getNOFILE(limit *[2]uint64)
TEXT ·getNOFILE(SB), NOSPLIT, $0-8
	XORL	DI, DI          // this process
	MOVL	$7, SI          // RLIMIT_NOFILE
	XORL	DX, DX          // nothing new
	MOVQ	limit+0(FP), R10
	MOVL	$302, AX        // SYS_prlimit64
	SYSCALL
	RET
