import { parseArgs } from 'node:util'
import { MAX_PROCESSES } from '../limits.js'
import { type Layout, type Part, parts, scaleOf } from '../processes/plan-processes.js'

export const usage = `npm start [-- --replicas N | --separate | --scale gateway=2,policy=2]

Without options, all parts run in one process.

  --replicas N       N such processes, which share the load
  --separate         one process for each part: ${parts.join(', ')}
  --scale PART=N,…   the same, and so many processes of a part
  --help             this text

Settings come from the environment; docs/settings.md lists them.`

export interface Arguments {
  readonly help: boolean
  readonly layout: Layout
}

const options = {
  replicas: { type: 'string' },
  separate: { type: 'boolean', default: false },
  scale: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** The error lists the options. */
function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options })
  } catch (err) {
    const names = Object.keys(options).map((name) => `--${name}`)
    throw new Error(`${(err as Error).message}. The options are ${names.join(', ')}`)
  }
}

export function readArguments(args: readonly string[]): Arguments {
  const { values } = parse(args)
  const { help, separate, replicas } = values
  if (!separate && values.scale === undefined) {
    if (replicas !== undefined && !isCount(replicas))
      throw new Error(`--replicas: '${replicas}' is not 1…${MAX_PROCESSES}`)
    return { help, layout: { replicas: Number(replicas ?? 1) } }
  }
  if (replicas !== undefined)
    throw new Error('--replicas: each of them has all parts, which cannot be separate')
  const scale: Record<Part, number> = { ...scaleOf(1) }
  for (const item of (values.scale ?? '').split(',').filter(Boolean)) {
    const [name, count = ''] = item.split('=')
    const part = parts.find((part) => part === name)
    if (!part || !isCount(count))
      throw new Error(`--scale: '${item}' is not ${parts.join('|')}=1…${MAX_PROCESSES}`)
    scale[part] = Number(count)
  }
  return { help, layout: { separate: scale } }
}

const isCount = (text: string): boolean =>
  /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_PROCESSES
