#include "textflag.h"

// See the amd64 version.

TEXT ·discard(SB), NOSPLIT|NOFRAME, $0-0
	RET

TEXT ·stop(SB), NOSPLIT|NOFRAME, $0-0
	MOVW	8(R1), R3
	MOVW	16(R1), R4
	ORRW	R3, R4, R4
	CBNZW	R4, done
	MOVW	·notify(SB), R0
	MOVD	$·one(SB), R1
	MOVD	$8, R2
	MOVD	$64, R8 // SYS_write
	SVC
done:
	RET

TEXT ·restore(SB), NOSPLIT|NOFRAME, $0-0
	MOVD	$139, R8 // SYS_rt_sigreturn
	SVC
	BRK

// func discardPC() uintptr
TEXT ·discardPC(SB), NOSPLIT, $0-8
	MOVD	$·discard(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func stopPC() uintptr
TEXT ·stopPC(SB), NOSPLIT, $0-8
	MOVD	$·stop(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func restorePC() uintptr
TEXT ·restorePC(SB), NOSPLIT, $0-8
	MOVD	$·restore(SB), R0
	MOVD	R0, ret+0(FP)
	RET
