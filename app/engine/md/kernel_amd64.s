#include "go_asm.h"
#include "textflag.h"

// The loops of kernel.go for AVX2, which take a bead and all its partners of a tile
// at once, and for AVX-512, which take two beads and theirs.
// Operations and their order are those of the Go code, lane by lane. Fused
// multiplication and addition would give different bits and is not used. Pairs that
// do not count or are out of reach are computed too, and a mask sets their force to
// zero.

// lanes are masks of the lanes whose bits are set, for all sixteen patterns.
#define LANES(at, a, b, c, d) \
	DATA lanes<>+(at+0)(SB)/8, a  \
	DATA lanes<>+(at+8)(SB)/8, b  \
	DATA lanes<>+(at+16)(SB)/8, c \
	DATA lanes<>+(at+24)(SB)/8, d

LANES(0, $0, $0, $0, $0)
LANES(32, $-1, $0, $0, $0)
LANES(64, $0, $-1, $0, $0)
LANES(96, $-1, $-1, $0, $0)
LANES(128, $0, $0, $-1, $0)
LANES(160, $-1, $0, $-1, $0)
LANES(192, $0, $-1, $-1, $0)
LANES(224, $-1, $-1, $-1, $0)
LANES(256, $0, $0, $0, $-1)
LANES(288, $-1, $0, $0, $-1)
LANES(320, $0, $-1, $0, $-1)
LANES(352, $-1, $-1, $0, $-1)
LANES(384, $0, $0, $-1, $-1)
LANES(416, $-1, $0, $-1, $-1)
LANES(448, $0, $-1, $-1, $-1)
LANES(480, $-1, $-1, $-1, $-1)
GLOBL lanes<>(SB), RODATA|NOPTR, $512

// FOUR defines a number repeated four times.
#define FOUR(name, value) \
	DATA name<>+0(SB)/8, value  \
	DATA name<>+8(SB)/8, value  \
	DATA name<>+16(SB)/8, value \
	DATA name<>+24(SB)/8, value \
	GLOBL name<>(SB), RODATA|NOPTR, $32

FOUR(one, $1.0)
FOUR(ashbaughHatchCutoff2, $4.0)
FOUR(ashbaughHatchScale, $10.0416)
FOUR(chargeCutoff2, $16.0)
FOUR(debyeHueckelMin2, $0x3F30000000000000)   // 2^-12
FOUR(debyeHueckelMax2, $0x402FFFFFFFFFFFFF)   // just below 16
FOUR(segmentStart, $0xFFFFC00000000000) // all bits of r² except those within a segment

// LOST is the place on the stack of the sums that the beads of a quad lose: for each
// bead, four lanes of x, y and z.
#define LOST(row, axis) (96*row+32*axis)(SP)

// CLEAR sets these sums to zero. It uses Y0.
#define CLEAR \
	VXORPD  Y0, Y0, Y0     \
	VMOVUPD Y0, LOST(0, 0) \
	VMOVUPD Y0, LOST(0, 1) \
	VMOVUPD Y0, LOST(0, 2) \
	VMOVUPD Y0, LOST(1, 0) \
	VMOVUPD Y0, LOST(1, 1) \
	VMOVUPD Y0, LOST(1, 2) \
	VMOVUPD Y0, LOST(2, 0) \
	VMOVUPD Y0, LOST(2, 1) \
	VMOVUPD Y0, LOST(2, 2) \
	VMOVUPD Y0, LOST(3, 0) \
	VMOVUPD Y0, LOST(3, 1) \
	VMOVUPD Y0, LOST(3, 2)

// LOSE adds the sums up over lanes and subtracts them from the forces of the quad at
// SI, for one axis. It uses Y0 to Y3.
#define LOSE(axis, force) \
	VMOVUPD     LOST(0, axis), X0                      \
	VMOVUPD     16+LOST(0, axis), X1                   \
	VMOVUPD     LOST(1, axis), X2                      \
	VMOVUPD     16+LOST(1, axis), X3                   \
	VINSERTF128 $1, LOST(2, axis), Y0, Y0              \
	VINSERTF128 $1, 16+LOST(2, axis), Y1, Y1           \
	VINSERTF128 $1, LOST(3, axis), Y2, Y2              \
	VINSERTF128 $1, 16+LOST(3, axis), Y3, Y3           \
	VADDPD      Y1, Y0, Y0                             \
	VADDPD      Y3, Y2, Y2                             \
	VHADDPD     Y2, Y0, Y0                             \
	VMOVUPD     force(SI), Y1                          \
	VSUBPD      Y0, Y1, Y1                             \
	VMOVUPD     Y1, force(SI)

// TILE points BX to the quad of tile CX, sets DX to its pairs, and loads positions
// to Y5, Y6, Y7 and forces to Y10, Y11, Y12.
#define TILE \
	MOVWLZX (R9)(CX*4), BX   \
	MOVWLZX 2(R9)(CX*4), DX  \
	SHLQ    $8, BX           \
	ADDQ    DI, BX           \
	VMOVUPD quad_x(BX), Y5   \
	VMOVUPD quad_y(BX), Y6   \
	VMOVUPD quad_z(BX), Y7   \
	VMOVUPD quad_fx(BX), Y10 \
	VMOVUPD quad_fy(BX), Y11 \
	VMOVUPD quad_fz(BX), Y12

// PAIRS points R8 to the mask of the pairs of a row: it shifts their bits in DX to an
// offset in the masks.
#define PAIRS(move, by) \
	MOVL DX, R8      \
	move $by, R8     \
	ANDL $0x1E0, R8  \
	ADDQ R13, R8

// APART sets Y0, Y1, Y2 to the separations from the bead in a row, and Y3 to the
// squares of the distances. It uses Y4.
#define APART(row) \
	VBROADCASTSD (quad_x+8*row)(SI), Y0 \
	VBROADCASTSD (quad_y+8*row)(SI), Y1 \
	VBROADCASTSD (quad_z+8*row)(SI), Y2 \
	VSUBPD       Y0, Y5, Y0             \
	VSUBPD       Y1, Y6, Y1             \
	VSUBPD       Y2, Y7, Y2             \
	VMULPD       Y0, Y0, Y3             \
	VMULPD       Y1, Y1, Y4             \
	VADDPD       Y4, Y3, Y3             \
	VMULPD       Y2, Y2, Y4             \
	VADDPD       Y4, Y3, Y3

// GAIN adds Y4 times the separations to the forces on the partners and to the sums
// that the bead in a row loses.
#define GAIN(row) \
	VMULPD  Y4, Y0, Y0           \
	VMULPD  Y4, Y1, Y1           \
	VMULPD  Y4, Y2, Y2           \
	VADDPD  Y0, Y10, Y10         \
	VADDPD  Y1, Y11, Y11         \
	VADDPD  Y2, Y12, Y12         \
	VADDPD  LOST(row, 0), Y0, Y0 \
	VADDPD  LOST(row, 1), Y1, Y1 \
	VADDPD  LOST(row, 2), Y2, Y2 \
	VMOVUPD Y0, LOST(row, 0)     \
	VMOVUPD Y1, LOST(row, 1)     \
	VMOVUPD Y2, LOST(row, 2)

// STORE writes the forces of a tile back.
#define STORE \
	VMOVUPD Y10, quad_fx(BX) \
	VMOVUPD Y11, quad_fy(BX) \
	VMOVUPD Y12, quad_fz(BX)

// STICK computes the pairs of a row. The partners' parameters are in Y8 and Y9, ones
// in Y15. It uses Y0 to Y4, Y13 and Y14.
#define STICK(row, move, by) \
	PAIRS(move, by)                                      \
	APART(row)                                           \
	VBROADCASTSD (quad_p+8*row)(SI), Y4                  \
	VADDPD       Y8, Y4, Y4                              \
	VMULPD       Y4, Y4, Y4                              \
	VCMPPD       $0x11, ashbaughHatchCutoff2<>(SB), Y3, Y14 /* r² < cutoff² */ \
	VANDPD       (R8), Y14, Y14                          \
	VDIVPD       Y3, Y15, Y3                             \
	VANDPD       Y14, Y3, Y3                        /* u, or 0 */ \
	VMULPD       Y3, Y4, Y4                         /* b */ \
	VMULPD       Y4, Y4, Y13                             \
	VMULPD       Y4, Y13, Y4                        /* a */ \
	VBROADCASTSD (quad_q+8*row)(SI), Y13                 \
	VADDPD       Y9, Y13, Y13                            \
	VCMPPD       $0x1D, Y15, Y4, Y14                /* a >= 1 */ \
	VBLENDVPD    Y14, ashbaughHatchScale<>(SB), Y13, Y13         \
	VMULPD       Y3, Y13, Y13                            \
	VMULPD       Y4, Y13, Y13                            \
	VSUBPD       Y15, Y4, Y4                             \
	VMULPD       Y13, Y4, Y4                             \
	GAIN(row)

// COEFFICIENTS sets Y15 and Y13 to two consecutive coefficients, from an offset in
// the table, for the segments at R8, R10, R14 and R15. It uses Y9.
#define COEFFICIENTS(offset) \
	VMOVUPD     offset(R12)(R8*1), X9            \
	VMOVUPD     offset(R12)(R10*1), X13          \
	VINSERTF128 $1, offset(R12)(R14*1), Y9, Y9   \
	VINSERTF128 $1, offset(R12)(R15*1), Y13, Y13 \
	VUNPCKLPD   Y13, Y9, Y15                     \
	VUNPCKHPD   Y13, Y9, Y13

// SCREEN computes the pairs of a row. The partners' charges are in Y8. It uses Y0 to
// Y4, Y9 and Y13 to Y15.
#define SCREEN(row, move, by) \
	PAIRS(move, by)                                      \
	APART(row)                                           \
	VBROADCASTSD (quad_p+8*row)(SI), Y14                 \
	VMULPD       Y8, Y14, Y14                            \
	VCMPPD       $0x11, chargeCutoff2<>(SB), Y3, Y4 /* r² < cutoff² */ \
	VANDPD       (R8), Y4, Y4                            \
	VANDPD       Y4, Y14, Y14                       /* product of charges, or 0 */ \
	VMAXPD       debyeHueckelMin2<>(SB), Y3, Y3                \
	VMINPD       debyeHueckelMax2<>(SB), Y3, Y3                \
	VPSRLQ       $const_segmentShift, Y3, Y4             \
	VPSLLQ       $5, Y4, Y4                              \
	VMOVDQU      Y4, 384(SP)                             \
	VANDPD       segmentStart<>(SB), Y3, Y4              \
	VSUBPD       Y4, Y3, Y3                         /* t */ \
	MOVQ         384(SP), R8                             \
	MOVQ         392(SP), R10                            \
	MOVQ         400(SP), R14                            \
	MOVQ         408(SP), R15                            \
	COEFFICIENTS(debyeHueckelTable_segment-const_firstSegment*32)    \
	VMULPD       Y13, Y3, Y13                            \
	VADDPD       Y13, Y15, Y4                            \
	COEFFICIENTS(debyeHueckelTable_segment-const_firstSegment*32+16) \
	VMULPD       Y13, Y3, Y13                            \
	VADDPD       Y13, Y15, Y15                           \
	VMULPD       Y3, Y3, Y3                              \
	VMULPD       Y15, Y3, Y3                             \
	VADDPD       Y3, Y4, Y4                              \
	VMULPD       Y14, Y4, Y4                             \
	GAIN(row)

// AVX-512 takes the rows of a tile in couples: the first is in the lower half of a
// register, the second in the upper one, which K7 selects.

// COUPLE broadcasts a field of two beads, each to its half.
#define COUPLE(field, row, to) \
	VBROADCASTSD (field+8*row)(SI), to        \
	VBROADCASTSD (field+8*row+8)(SI), K7, to

// COUPLES puts the positions of the first couple into Z16, Z17, Z18, those of the
// second into Z19, Z20, Z21, and sets their sums, Z26 to Z31, to zero.
#define COUPLES \
	COUPLE(quad_x, 0, Z16) \
	COUPLE(quad_y, 0, Z17) \
	COUPLE(quad_z, 0, Z18) \
	COUPLE(quad_x, 2, Z19) \
	COUPLE(quad_y, 2, Z20) \
	COUPLE(quad_z, 2, Z21) \
	VPXORQ Z26, Z26, Z26   \
	VPXORQ Z27, Z27, Z27   \
	VPXORQ Z28, Z28, Z28   \
	VPXORQ Z29, Z29, Z29   \
	VPXORQ Z30, Z30, Z30   \
	VPXORQ Z31, Z31, Z31

// TILE512 points BX to the quad of tile CX, sets K1 and K2 to the pairs of the
// couples, and loads positions, twice, to Z0, Z1, Z2 and forces to Y11, Y12, Y13.
#define TILE512 \
	MOVWLZX         (R9)(CX*4), BX   \
	MOVWLZX         2(R9)(CX*4), DX  \
	SHLQ            $8, BX           \
	ADDQ            DI, BX           \
	KMOVW           DX, K1           \
	KSHIFTRW        $8, K1, K2       \
	VBROADCASTF64X4 quad_x(BX), Z0   \
	VBROADCASTF64X4 quad_y(BX), Z1   \
	VBROADCASTF64X4 quad_z(BX), Z2   \
	VMOVUPD         quad_fx(BX), Y11 \
	VMOVUPD         quad_fy(BX), Y12 \
	VMOVUPD         quad_fz(BX), Y13

// APART512 is APART for a couple at X, Y, Z: it sets Z5 to Z8 and uses Z9.
#define APART512(AX, AY, AZ) \
	VSUBPD AX, Z0, Z5 \
	VSUBPD AY, Z1, Z6 \
	VSUBPD AZ, Z2, Z7 \
	VMULPD Z5, Z5, Z8 \
	VMULPD Z6, Z6, Z9 \
	VADDPD Z9, Z8, Z8 \
	VMULPD Z7, Z7, Z9 \
	VADDPD Z9, Z8, Z8

// GAIN512 is GAIN for Z9 and separations in Z5, Z6, Z7; it uses Z8.
#define GAIN512(SX, SY, SZ) \
	VMULPD        Z9, Z5, Z5   \
	VMULPD        Z9, Z6, Z6   \
	VMULPD        Z9, Z7, Z7   \
	VADDPD        Z5, SX, SX   \
	VADDPD        Z6, SY, SY   \
	VADDPD        Z7, SZ, SZ   \
	VADDPD        Y5, Y11, Y11 \
	VADDPD        Y6, Y12, Y12 \
	VADDPD        Y7, Y13, Y13 \
	VEXTRACTF64X4 $1, Z5, Y5   \
	VEXTRACTF64X4 $1, Z6, Y6   \
	VEXTRACTF64X4 $1, Z7, Y7   \
	VADDPD        Y5, Y11, Y11 \
	VADDPD        Y6, Y12, Y12 \
	VADDPD        Y7, Y13, Y13

// STORE512 writes the forces of a tile back.
#define STORE512 \
	VMOVUPD Y11, quad_fx(BX) \
	VMOVUPD Y12, quad_fy(BX) \
	VMOVUPD Y13, quad_fz(BX)

// LOSE512 is LOSE for the sums of the couples.
#define LOSE512(axis, force, first, both, third, others) \
	VMOVUPD       first, LOST(0, axis)      \
	VEXTRACTF64X4 $1, both, LOST(1, axis)   \
	VMOVUPD       third, LOST(2, axis)      \
	VEXTRACTF64X4 $1, others, LOST(3, axis) \
	LOSE(axis, force)

// STICK512 computes the pairs of a couple. The partners' parameters are in Z3 and Z4,
// ones in Z15, ashbaughHatchScale in Z14. It uses Z5 to Z10, K3 and K4.
#define STICK512(pairs, AX, AY, AZ, P, Q, SX, SY, SZ) \
	APART512(AX, AY, AZ)                                    \
	VCMPPD.BCST $0x11, ashbaughHatchCutoff2<>(SB), Z8, pairs, K3 \
	VADDPD      P, Z3, Z9                                \
	VMULPD      Z9, Z9, Z9                               \
	VDIVPD.Z    Z8, Z15, K3, Z8 /* u, or 0 */            \
	VMULPD      Z8, Z9, Z9      /* b */                  \
	VMULPD      Z9, Z9, Z10                              \
	VMULPD      Z9, Z10, Z9     /* a */                  \
	VADDPD      Q, Z4, Z10                               \
	VCMPPD      $0x1D, Z15, Z9, K4                       \
	VMOVAPD     Z14, K4, Z10                             \
	VMULPD      Z8, Z10, Z10                             \
	VMULPD      Z9, Z10, Z10                             \
	VSUBPD      Z15, Z9, Z9                              \
	VMULPD      Z10, Z9, Z9                              \
	GAIN512(SX, SY, SZ)

// SEGMENTS loads the coefficients of eight numbers, whose offsets are on the stack,
// to Z9, Z10 and Z22, Z23. It uses R8, Z24 and Z25.
#define SEGMENT(lane, A, B) \
	MOVQ        (384+8*lane)(SP), R8                                                  \
	VINSERTF64X2 $(lane/2), (debyeHueckelTable_segment-const_firstSegment*32)(R12)(R8*1), A, A    \
	VINSERTF64X2 $(lane/2), (debyeHueckelTable_segment-const_firstSegment*32+16)(R12)(R8*1), B, B

#define FIRSTSEGMENT(lane, A, B) \
	MOVQ    (384+8*lane)(SP), R8                                              \
	VMOVUPD (debyeHueckelTable_segment-const_firstSegment*32)(R12)(R8*1), A    \
	VMOVUPD (debyeHueckelTable_segment-const_firstSegment*32+16)(R12)(R8*1), B

#define SEGMENTS \
	FIRSTSEGMENT(0, X22, X24) \
	FIRSTSEGMENT(1, X23, X25) \
	SEGMENT(2, Z22, Z24)      \
	SEGMENT(3, Z23, Z25)      \
	SEGMENT(4, Z22, Z24)      \
	SEGMENT(5, Z23, Z25)      \
	SEGMENT(6, Z22, Z24)      \
	SEGMENT(7, Z23, Z25)      \
	VUNPCKLPD Z23, Z22, Z9    \
	VUNPCKHPD Z23, Z22, Z10   \
	VUNPCKLPD Z25, Z24, Z22   \
	VUNPCKHPD Z25, Z24, Z23

// SCREEN512 computes the pairs of a couple. The partners' charges are in Z3. It uses
// Z4 to Z10, Z22 to Z25 and K3.
#define SCREEN512(pairs, AX, AY, AZ, P, SX, SY, SZ) \
	APART512(AX, AY, AZ)                                     \
	VCMPPD.BCST $0x11, chargeCutoff2<>(SB), Z8, pairs, K3 \
	VMULPD.Z    P, Z3, K3, Z4 /* product of charges, or 0 */ \
	VMAXPD.BCST debyeHueckelMin2<>(SB), Z8, Z8                  \
	VMINPD.BCST debyeHueckelMax2<>(SB), Z8, Z8                  \
	VPSRLQ      $const_segmentShift, Z8, Z9               \
	VPSLLQ      $5, Z9, Z9                                \
	VMOVDQU64   Z9, 384(SP)                               \
	VPANDQ.BCST segmentStart<>(SB), Z8, Z9                \
	VSUBPD      Z9, Z8, Z8    /* t */                     \
	SEGMENTS                                              \
	VMULPD      Z10, Z8, Z10                              \
	VADDPD      Z10, Z9, Z9                               \
	VMULPD      Z23, Z8, Z23                              \
	VADDPD      Z23, Z22, Z22                             \
	VMULPD      Z8, Z8, Z8                                \
	VMULPD      Z22, Z8, Z8                               \
	VADDPD      Z8, Z9, Z9                                \
	VMULPD      Z4, Z9, Z9                                \
	GAIN512(SX, SY, SZ)

// func avx2AshbaughHatch(quads *quad, start *int32, tiles *tile, rows int)
TEXT ·avx2AshbaughHatch(SB), NOSPLIT, $384-32
	MOVQ    quads+0(FP), DI
	MOVQ    DI, SI
	MOVQ    start+8(FP), AX
	MOVQ    tiles+16(FP), R9
	MOVQ    rows+24(FP), R10
	LEAQ    lanes<>(SB), R13
	VMOVUPD one<>(SB), Y15
	MOVLQSX (AX), CX

ashbaughHatchRow:
	ADDQ    $4, AX
	MOVLQSX (AX), R11
	CMPQ    CX, R11
	JGE     ashbaughHatchNext
	CLEAR

ashbaughHatchTile:
	TILE
	VMOVUPD quad_p(BX), Y8
	VMOVUPD quad_q(BX), Y9
	STICK(0, SHLL, 5)
	STICK(1, SHLL, 1)
	STICK(2, SHRL, 3)
	STICK(3, SHRL, 7)
	STORE
	INCQ    CX
	CMPQ    CX, R11
	JLT     ashbaughHatchTile
	LOSE(0, quad_fx)
	LOSE(1, quad_fy)
	LOSE(2, quad_fz)

ashbaughHatchNext:
	ADDQ $quad__size, SI
	DECQ R10
	JNZ  ashbaughHatchRow
	VZEROUPPER
	RET

// func avx2DebyeHueckel(quads *quad, start *int32, tiles *tile, rows int, table *debyeHueckelTable)
TEXT ·avx2DebyeHueckel(SB), NOSPLIT, $416-40
	MOVQ    quads+0(FP), DI
	MOVQ    DI, SI
	MOVQ    start+8(FP), AX
	MOVQ    tiles+16(FP), R9
	MOVQ    table+32(FP), R12
	LEAQ    lanes<>(SB), R13
	MOVLQSX (AX), CX

debyeHueckelRow:
	ADDQ    $4, AX
	MOVLQSX (AX), R11
	CMPQ    CX, R11
	JGE     debyeHueckelNext
	CLEAR

debyeHueckelTile:
	TILE
	VMOVUPD quad_q(BX), Y8
	SCREEN(0, SHLL, 5)
	SCREEN(1, SHLL, 1)
	SCREEN(2, SHRL, 3)
	SCREEN(3, SHRL, 7)
	STORE
	INCQ    CX
	CMPQ    CX, R11
	JLT     debyeHueckelTile
	LOSE(0, quad_fx)
	LOSE(1, quad_fy)
	LOSE(2, quad_fz)

debyeHueckelNext:
	ADDQ $quad__size, SI
	DECQ rows+24(FP)
	JNZ  debyeHueckelRow
	VZEROUPPER
	RET

// func avx512AshbaughHatch(quads *quad, start *int32, tiles *tile, rows int)
TEXT ·avx512AshbaughHatch(SB), NOSPLIT, $384-32
	MOVQ         quads+0(FP), DI
	MOVQ         DI, SI
	MOVQ         start+8(FP), AX
	MOVQ         tiles+16(FP), R9
	MOVQ         rows+24(FP), R10
	MOVL         $0xF0, CX
	KMOVW        CX, K7
	VBROADCASTSD one<>(SB), Z15
	VBROADCASTSD ashbaughHatchScale<>(SB), Z14
	MOVLQSX      (AX), CX

ashbaughHatchRow:
	ADDQ    $4, AX
	MOVLQSX (AX), R11
	CMPQ    CX, R11
	JGE     ashbaughHatchNext
	COUPLES
	COUPLE(quad_p, 0, Z22)
	COUPLE(quad_q, 0, Z23)
	COUPLE(quad_p, 2, Z24)
	COUPLE(quad_q, 2, Z25)

ashbaughHatchTile:
	TILE512
	VBROADCASTF64X4 quad_p(BX), Z3
	VBROADCASTF64X4 quad_q(BX), Z4
	STICK512(K1, Z16, Z17, Z18, Z22, Z23, Z26, Z27, Z28)
	STICK512(K2, Z19, Z20, Z21, Z24, Z25, Z29, Z30, Z31)
	STORE512
	INCQ            CX
	CMPQ            CX, R11
	JLT             ashbaughHatchTile
	LOSE512(0, quad_fx, Y26, Z26, Y29, Z29)
	LOSE512(1, quad_fy, Y27, Z27, Y30, Z30)
	LOSE512(2, quad_fz, Y28, Z28, Y31, Z31)

ashbaughHatchNext:
	ADDQ $quad__size, SI
	DECQ R10
	JNZ  ashbaughHatchRow
	VZEROUPPER
	RET

// func avx512DebyeHueckel(quads *quad, start *int32, tiles *tile, rows int, table *debyeHueckelTable)
TEXT ·avx512DebyeHueckel(SB), NOSPLIT, $448-40
	MOVQ    quads+0(FP), DI
	MOVQ    DI, SI
	MOVQ    start+8(FP), AX
	MOVQ    tiles+16(FP), R9
	MOVQ    rows+24(FP), R10
	MOVQ    table+32(FP), R12
	MOVL    $0xF0, CX
	KMOVW   CX, K7
	MOVLQSX (AX), CX

debyeHueckelRow:
	ADDQ    $4, AX
	MOVLQSX (AX), R11
	CMPQ    CX, R11
	JGE     debyeHueckelNext
	COUPLES
	COUPLE(quad_p, 0, Z14)
	COUPLE(quad_p, 2, Z15)

debyeHueckelTile:
	TILE512
	VBROADCASTF64X4 quad_q(BX), Z3
	SCREEN512(K1, Z16, Z17, Z18, Z14, Z26, Z27, Z28)
	SCREEN512(K2, Z19, Z20, Z21, Z15, Z29, Z30, Z31)
	STORE512
	INCQ            CX
	CMPQ            CX, R11
	JLT             debyeHueckelTile
	LOSE512(0, quad_fx, Y26, Z26, Y29, Z29)
	LOSE512(1, quad_fy, Y27, Z27, Y30, Z30)
	LOSE512(2, quad_fz, Y28, Z28, Y31, Z31)

debyeHueckelNext:
	ADDQ $quad__size, SI
	DECQ R10
	JNZ  debyeHueckelRow
	VZEROUPPER
	RET
