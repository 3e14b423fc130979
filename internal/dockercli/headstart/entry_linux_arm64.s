#include "textflag.h"

// Entry is where the kernel begins. Go code has its goroutine in a register: it is
// given one whose stack has no end. The runtime begins on the stack as the kernel
// left it.
TEXT ·Entry(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R0
	SUB	$48, RSP
	MOVD	R0, 32(RSP)
	MOVD	$·nobody(SB), R1
	MOVD	R1, g
	MOVD	R0, 8(RSP)
	CALL	·begin(SB)
	MOVD	32(RSP), R0
	MOVD	R0, RSP
	B	_rt0_arm64_linux(SB)
