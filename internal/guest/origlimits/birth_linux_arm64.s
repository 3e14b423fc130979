#include "textflag.h"

// func getNOFILE(limit *[2]uint64)
TEXT ·getNOFILE(SB), NOSPLIT, $0-8
	MOVD	$0, R0          // this process
	MOVD	$7, R1          // RLIMIT_NOFILE
	MOVD	$0, R2          // nothing new
	MOVD	limit+0(FP), R3
	MOVD	$261, R8        // SYS_prlimit64
	SVC
	RET
