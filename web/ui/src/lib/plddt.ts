// The confidence of predicted structures, as AlphaFold's authors colour it.

export const plddtBands = [
  { above: 90, colour: '#0053d6', name: 'very high', range: '> 90' },
  { above: 70, colour: '#65cbf3', name: 'high', range: '70–90' },
  { above: 50, colour: '#ffdb13', name: 'low', range: '50–70' },
  { above: -Infinity, colour: '#ff7d45', name: 'very low', range: '< 50' },
] as const
