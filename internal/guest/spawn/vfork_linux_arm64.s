#include "textflag.h"

// func vfork(flags uintptr) (pid, errno uintptr)
//
// See the amd64 version. Here the return address is in a register already.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-24
	MOVD	flags+0(FP), R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$220, R8 // SYS_clone
	SVC
	CMN	$4095, R0
	BCC	done
	NEG	R0, R0
	MOVD	$0, R1
	MOVD	R1, pid+8(FP)
	MOVD	R0, errno+16(FP)
	RET
done:
	MOVD	R0, pid+8(FP)
	MOVD	$0, R1
	MOVD	R1, errno+16(FP)
	RET
