#include "go_asm.h"
#include "textflag.h"

// What a byte is, is looked up by each of its halves: the class is what both
// tables say. 1: a control character. 2 " /, 4 \, 8 b f n, 16 r t: what a
// backslash may stand before. Bytes beyond ASCII have none.
DATA low<>+0(SB)/8, $0x01090111011b0101
DATA low<>+8(SB)/8, $0x0309010501010101
DATA low<>+16(SB)/8, $0x01090111011b0101
DATA low<>+24(SB)/8, $0x0309010501010101
GLOBL low<>(SB), RODATA|NOPTR, $32

DATA high<>+0(SB)/8, $0x1008040000020101
DATA high<>+8(SB)/8, $0
DATA high<>+16(SB)/8, $0x1008040000020101
DATA high<>+24(SB)/8, $0
GLOBL high<>(SB), RODATA|NOPTR, $32

#define EVERY(name, byte8) \
	DATA name<>+0(SB)/8, byte8  \
	DATA name<>+8(SB)/8, byte8  \
	DATA name<>+16(SB)/8, byte8 \
	DATA name<>+24(SB)/8, byte8 \
	GLOBL name<>(SB), RODATA|NOPTR, $32

EVERY(half, $0x0f0f0f0f0f0f0f0f)
EVERY(one, $0x0101010101010101)
EVERY(quote, $0x2222222222222222)
EVERY(slash, $0x5c5c5c5c5c5c5c5c)

// LOOK looks at the 32 bytes in data and puts a bit for each into the four.
#define LOOK(data, quotes, slashes, simple, odd) \
	VPSRLW $4, data, Y2             \
	VPAND half<>(SB), Y2, Y2        \
	VPSHUFB Y2, Y4, Y2              \ // by the upper half
	VPSHUFB data, Y3, Y6            \ // by the lower half; 0 beyond ASCII
	VPAND Y2, Y6, Y2                \
	VPCMPEQB Y5, Y2, Y6             \ // control characters,
	VPOR data, Y6, Y6               \ // and whatever has the highest bit
	VPMOVMSKB Y6, odd               \
	VPCMPGTB Y5, Y2, Y2             \ // above 1
	VPMOVMSKB Y2, simple            \
	VPCMPEQB quote<>(SB), data, Y6  \
	VPMOVMSKB Y6, quotes            \
	VPCMPEQB slash<>(SB), data, Y6  \
	VPMOVMSKB Y6, slashes

// func look(block *[64]byte, m *marks)
TEXT ·look(SB), NOSPLIT, $0-16
	MOVQ block+0(FP), AX
	MOVQ m+8(FP), SI
	VMOVDQU 0(AX), Y0
	VMOVDQU 32(AX), Y1
	VMOVDQU low<>(SB), Y3
	VMOVDQU high<>(SB), Y4
	VMOVDQU one<>(SB), Y5
	LOOK(Y0, R8, R9, R10, R11)
	LOOK(Y1, BX, CX, DX, DI)
	VZEROUPPER
	SHLQ $32, BX
	SHLQ $32, CX
	SHLQ $32, DX
	SHLQ $32, DI
	ORQ R8, BX
	ORQ R9, CX
	ORQ R10, DX
	ORQ R11, DI
	MOVQ BX, marks_quotes(SI)
	MOVQ CX, marks_slashes(SI)
	MOVQ DX, marks_simple(SI)
	MOVQ DI, marks_odd(SI)
	RET
