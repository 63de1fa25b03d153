import { parseArgs } from 'node:util'
import { type Part, parts, type Scale } from './processes/processes.js'

export const usage = `npm start [-- --scale gateway=2,policy=2]

  --scale PART=N,…   so many processes of a part: ${parts.join(', ')}
  --help             this text

Settings come from the environment; docs/settings.md lists them.`

const MAX_PROCESSES = 16

export function readArguments(args: readonly string[]): { help: boolean; scale: Scale } {
  const { values } = parseArgs({
    args: [...args],
    options: { scale: { type: 'string', default: '' }, help: { type: 'boolean', default: false } },
  })
  const scale = Object.fromEntries(parts.map((part) => [part, 1])) as Record<Part, number>
  for (const item of values.scale.split(',').filter(Boolean)) {
    const [name, count = ''] = item.split('=')
    const part = parts.find((part) => part === name)
    if (!part || !/^\d+$/.test(count) || Number(count) < 1 || Number(count) > MAX_PROCESSES) {
      throw new Error(`--scale: '${item}' is not ${parts.join('|')}=1…${MAX_PROCESSES}`)
    }
    scale[part] = Number(count)
  }
  return { help: values.help, scale }
}
