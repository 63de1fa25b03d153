/** A text in the Prometheus format. Without a process its samples remain as they are. */
export interface MetricsText {
  readonly process?: string
  readonly text: string
}

interface Family {
  readonly head: Map<string, string> // HELP and TYPE
  readonly samples: string[]
}

/**
 * Merges the texts of several processes into one. Each sample gets a label with the name of its process; each metric is
 * described once.
 */
export function mergeMetrics(texts: readonly MetricsText[]): string {
  const families = new Map<string, Family>()
  for (const { process, text } of texts) {
    let family: Family = { head: new Map(), samples: [] }
    for (const line of text.split('\n')) {
      const [, keyword, name] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? []
      if (keyword !== undefined && name !== undefined) {
        family = families.get(name) ?? { head: new Map(), samples: [] }
        families.set(name, family)
        if (!family.head.has(keyword)) family.head.set(keyword, line)
      } else if (line !== '' && !line.startsWith('#'))
        family.samples.push(process === undefined ? line : withProcess(line, process))
    }
  }
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head.values(), ...samples])
  return `${lines.join('\n')}\n`
}

const withProcess = (sample: string, process: string): string =>
  sample.replace(/^([\w:]+)(\{)?/, (_, name: string, brace?: string) => {
    const label = `process="${process}"`
    return brace === undefined ? `${name}{${label}}` : `${name}{${label},`
  })

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
