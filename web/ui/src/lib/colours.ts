// Colors of runs, chains and models: the palette of Okabe and Ito, which is safe for color
// blindness.
export const okabeIto = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#b8a800'] as const
