import { parseArgs } from 'node:util'
import { MAX_PROCESSES } from '../limits.js'
import { type Component, components, type Layout, scaleOf } from '../processes/plan-processes.js'

export const usage = `npm start [-- --replicas N | --separate | --scale gateway=2,policy=2]

Without options, all components run in one process.

  --replicas N       N such processes, which share the load
  --separate         one process for each component: ${components.join(', ')}
  --scale NAME=N,…   the same, and so many processes of a component
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
    throw new Error('--replicas: each of them has all components, which cannot be separate')
  const scale: Record<Component, number> = { ...scaleOf(1) }
  for (const item of (values.scale ?? '').split(',').filter(Boolean)) {
    const [name, count = ''] = item.split('=')
    const component = components.find((component) => component === name)
    if (!component || !isCount(count))
      throw new Error(`--scale: '${item}' is not ${components.join('|')}=1…${MAX_PROCESSES}`)
    scale[component] = Number(count)
  }
  return { help, layout: { separate: scale } }
}

const isCount = (text: string): boolean =>
  /^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_PROCESSES
