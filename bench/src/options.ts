import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Line } from '../../test-e2e/router/lines.js'
import { type Topology, topologyOf } from './topology.js'

export const usage = `npm run bench [-- [routers|rest|policy-change|cold-start] OPTIONS]

Without --url it starts the product in a directory of its own and stops it at the end.
With 'routers' it connects test routers and measures what they cost. 'rest' measures CPU and memory without requests, twice.
'policy-change' changes a policy while sessions are open: 195,000 pairs and 20,000 sessions with --scale 20. 'cold-start'
kills the process of one component after the other, and measures the start of its successor: use --separate 1.

  --scale N          size: N times 1,000 identities, 100 services, 50 policies, 5 routers (default 1)
  --authenticators N passwords and N certificates more, as rows of the database; not with --url
  --only A,B,…       scenarios, by their names (default: all)
  --concurrency N    requests under way at once (default 8)
  --seconds N        length of a round (default 5)
  --repeat N         turns of the product and the other one, after one to warm up (default 3)
  --keep FILE        what was seeded: written after seeding, read when it is there
  --json FILE        appends one line per round
  --beside DIR|URL   also measures another checkout of this project, or a controller of the same API that runs
                     already, in turns with the first one
  --beside-user, --beside-password, --beside-pid  its administrator and processes, if it is a URL
  --replicas N       processes with all components, of the product that it starts itself (default 1)
  --separate N       in place of them, N processes of each component
  --beside-replicas N,…, --beside-separate N,…  also measures the product with these processes
  --url URL          a controller that runs already, ours or another of the same API
  --user, --password its administrator
  --pid N,…          its processes, of which all descendants count too
  --ctrl HOST:PORT   where it takes connections of routers
  --routers N        test routers (default 1000)
  --line 1.1|1.6|2.0 of which release line they are (default 1.1); other lines have a data model: all services use them
  --help             this text`

export interface Options {
  readonly help: boolean
  readonly topology: Topology
  /** Further identities, added to the database directly. */
  readonly rows: number
  readonly only: readonly string[]
  readonly concurrency: number
  readonly seconds: number
  readonly repeat: number
  readonly keep: string | undefined
  readonly json: string | undefined
  readonly mode: Mode
  readonly routers: number
  readonly line: Line
  readonly controller: RunningController | undefined
  /** Of the product that it starts itself. */
  readonly layout: Layout
  readonly besideLayouts: readonly Layout[]
  readonly beside: { readonly directory: string } | RunningController | undefined
}

const modes = ['requests', 'routers', 'rest', 'policy-change', 'cold-start'] as const
export type Mode = (typeof modes)[number]

const lines: readonly Line[] = ['1.1', '1.6', '2.0']

/** So many processes with all components, or so many of each component. */
export interface Layout {
  readonly count: number
  readonly isSeparate: boolean
}

/** A controller that runs already. */
export interface RunningController {
  readonly url: string
  readonly username: string
  readonly password: string
  readonly pids: readonly number[]
  /** `host:port` for routers. */
  readonly ctrlAddress?: string | undefined
}

export function readOptions(args: readonly string[]): Options {
  const text = (fallback?: string) => ({ type: 'string' as const, ...(fallback && { default: fallback }) })
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      scale: text('1'),
      authenticators: text(),
      only: text(),
      concurrency: text('8'),
      seconds: text('5'),
      repeat: text('3'),
      keep: text(),
      json: text(),
      url: text(),
      user: text('admin'),
      password: text('admin'),
      pid: text(),
      ctrl: text(),
      replicas: text(),
      separate: text(),
      'beside-replicas': text(),
      'beside-separate': text(),
      beside: text(),
      'beside-user': text('admin'),
      'beside-password': text('admin'),
      'beside-pid': text(),
      routers: text('1000'),
      line: text('1.1'),
      help: { type: 'boolean', default: false },
    },
  })
  const [word = 'requests'] = positionals
  const mode = modes.find((name) => name === word)
  if (!mode || positionals.length > 1)
    throw new Error(`'${positionals.join(' ')}' is none of ${modes.join()}`)
  const { url, user = '', password = '', ctrl, beside } = values
  const { 'beside-user': besideUser = '', 'beside-password': besidePassword = '' } = values
  return {
    help: values.help,
    topology: topologyOf(number('scale', values.scale)),
    rows: values.authenticators === undefined ? 0 : number('authenticators', values.authenticators),
    only: listOf(values.only),
    concurrency: number('concurrency', values.concurrency),
    seconds: number('seconds', values.seconds),
    repeat: number('repeat', values.repeat),
    keep: values.keep,
    json: values.json,
    mode,
    routers: number('routers', values.routers),
    line: lineOf(values.line),
    controller: url ? { ...controller(url, user, password, values.pid), ctrlAddress: ctrl } : undefined,
    layout: layoutOf(values),
    besideLayouts: [
      ...layoutsOf('beside-replicas', values['beside-replicas']),
      ...layoutsOf('beside-separate', values['beside-separate']),
    ],
    beside: !beside
      ? undefined
      : beside.startsWith('http')
        ? controller(beside, besideUser, besidePassword, values['beside-pid'])
        : { directory: resolve(process.env.INIT_CWD ?? '.', beside) },
  }
}

function lineOf(text: string | undefined): Line {
  const line = lines.find((known) => known === text)
  if (!line) throw new Error(`--line: '${text}' is none of ${lines.join()}`)
  return line
}

const controller = (url: string, username: string, password: string, pids?: string): RunningController => ({
  url: url.replace(/\/+$/, ''),
  username,
  password,
  pids: listOf(pids).map((pid) => number('pid', pid)),
})

function layoutOf({ replicas, separate }: { replicas?: string; separate?: string }): Layout {
  if (separate === undefined) return { count: number('replicas', replicas ?? '1'), isSeparate: false }
  if (replicas !== undefined) throw new Error('--replicas and --separate exclude each other')
  return { count: number('separate', separate), isSeparate: true }
}

const layoutsOf = (option: string, text: string | undefined): Layout[] =>
  listOf(text).map((count) => ({ count: number(option, count), isSeparate: option.endsWith('separate') }))

const listOf = (text: string | undefined): string[] => (text ?? '').split(',').filter(Boolean)

function number(name: string, text: string | undefined): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name}: '${text}' is not a number above 0`)
  return value
}
