/** One line of the Prometheus text format. */
export interface Sample {
  /** As written, with braces. */
  readonly labels: string
  readonly value: number
}

export const samplesOf = (text: string, name: string): readonly Sample[] =>
  [...text.matchAll(new RegExp(`^${name}(\\{.*\\})? (\\S+)$`, 'gm'))].map(([, labels = '', value]) => ({
    labels,
    value: Number(value),
  }))

export const labelIn = (labels: string, name: string): string =>
  new RegExp(`\\b${name}="([^"]*)"`).exec(labels)?.[1] ?? ''
