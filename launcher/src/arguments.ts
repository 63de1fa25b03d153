import { parseArgs } from 'node:util'
import { type Part, parts, type Scale, single } from './processes/processes.js'

export const usage = `npm start [-- --separate | --scale gateway=2,policy=2]

Without options, all parts run in one process.

  --separate         one process for each part: ${parts.join(', ')}
  --scale PART=N,…   the same, and so many processes of a part
  --help             this text

Settings come from the environment; docs/settings.md lists them.`

const MAX_PROCESSES = 16

export interface Arguments {
  readonly help: boolean
  /** Undefined: all parts in one process. */
  readonly scale: Scale | undefined
}

export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      separate: { type: 'boolean', default: false },
      scale: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  const { help, separate } = values
  if (!separate && values.scale === undefined) return { help, scale: undefined }
  const scale: Record<Part, number> = { ...single }
  for (const item of (values.scale ?? '').split(',').filter(Boolean)) {
    const [name, count = ''] = item.split('=')
    const part = parts.find((part) => part === name)
    if (!part || !/^\d+$/.test(count) || Number(count) < 1 || Number(count) > MAX_PROCESSES) {
      throw new Error(`--scale: '${item}' is not ${parts.join('|')}=1…${MAX_PROCESSES}`)
    }
    scale[part] = Number(count)
  }
  return { help, scale }
}
