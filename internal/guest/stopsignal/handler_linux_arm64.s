#include "textflag.h"

// See the amd64 version.
TEXT ·handler(SB), NOSPLIT|NOFRAME, $0-0
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

TEXT ·restorer(SB), NOSPLIT|NOFRAME, $0-0
	MOVD	$139, R8 // SYS_rt_sigreturn
	SVC
	BRK

// func handlerPC() uintptr
TEXT ·handlerPC(SB), NOSPLIT, $0-8
	MOVD	$·handler(SB), R0
	MOVD	R0, ret+0(FP)
	RET

// func restorerPC() uintptr
TEXT ·restorerPC(SB), NOSPLIT, $0-8
	MOVD	$·restorer(SB), R0
	MOVD	R0, ret+0(FP)
	RET
