import type { Setting, Settings } from '@overlay/process/settings'
import { settingsOfProcesses } from './process-settings.js'

/** Set by the launcher for each process, whatever its own environment contains. */
const assigned = new Set([
  'OVERLAY_OPS_LISTEN',
  'OVERLAY_RPC_LISTEN',
  'OVERLAY_TLS',
  'OVERLAY_KEY_SECRET',
  'OVERLAY_CTRL_ID',
  ...Object.keys(settingsOfProcesses).map((component) => `OVERLAY_${component.toUpperCase()}_PEERS`),
])

/** Between the launcher and its processes, and of tests. */
const internal = /^OVERLAY_(RUN_AS|PARENT_PIPE|TEST_.*)$/

export interface EnvironmentCheck {
  /** Settings that processes inherit from the environment of the launcher, by variable. */
  readonly inherited: Settings
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

/**
 * Checks variables that begin with OVERLAY_. A name that resembles a setting is a problem: a setting that is misspelled
 * must not be without effect. Other unknown names may be of other programs, and are a warning.
 * @param own the settings of the launcher
 */
export function checkEnvironment(own: Settings, env: NodeJS.ProcessEnv): EnvironmentCheck {
  const settings = [...Object.values(settingsOfProcesses), own].flatMap((one) =>
    Object.values<Setting<unknown>>(one),
  )
  const byName = new Map(settings.map((setting) => [setting.env, setting]))
  const names = new Set(Object.values(own).map((setting) => setting.env))
  const inherited = [...byName].filter(([name]) => !names.has(name) && !assigned.has(name))
  const settable = [...names, ...inherited.map(([name]) => name)]

  const problems: string[] = []
  const [ignored, unknown]: [string[], string[]] = [[], []]
  for (const name of Object.keys(env).sort()) {
    if (!name.startsWith(prefix) || !env[name] || internal.test(name) || settable.includes(name)) continue
    const near = nearest(name, settable)
    if (assigned.has(name)) ignored.push(name)
    else if (near === undefined) unknown.push(name)
    else
      problems.push(
        `${name} is not a setting: did you mean ${near}? If another program uses it, unset it for this one`,
      )
  }
  const warnings = [
    ...(ignored.length > 0
      ? [`ignored, because the launcher chooses their values: ${ignored.join(', ')}`]
      : []),
    ...(unknown.length > 0
      ? [`no settings of this product, ignored: ${unknown.join(', ')} (docs/settings.md)`]
      : []),
  ]
  return { inherited: Object.fromEntries(inherited), problems, warnings }
}

const prefix = 'OVERLAY_'
const LONG = 8

/** The name that differs least. Undefined: none is similar. */
function nearest(name: string, names: readonly string[]): string | undefined {
  const text = withoutPrefix(name)
  const [best] = names
    .map((known) => ({ known, text: withoutPrefix(known) }))
    .map((candidate) => ({ ...candidate, distance: distanceOf(text, candidate.text) }))
    .filter((candidate) => isSimilar(text, candidate.text, candidate.distance))
    .sort((a, b) => a.distance - b.distance)
  return best?.known
}

const withoutPrefix = (name: string): string => (name.startsWith(prefix) ? name.slice(prefix.length) : name)

/** A quarter of the letters differs, or one contains the other. */
const isSimilar = (a: string, b: string, distance: number): boolean =>
  distance <= Math.round(Math.max(a.length, b.length) / 4) ||
  (a.length >= LONG && b.includes(a)) ||
  (b.length >= LONG && a.includes(b))

/** Insertions, deletions, replacements and swaps of neighbours that make one text of the other. */
function distanceOf(a: string, b: string): number {
  const at = (row: readonly number[] | undefined, column: number): number => row?.[column] ?? Infinity
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(
        at(rows[i - 1], j) + 1,
        at(row, j - 1) + 1,
        at(rows[i - 1], j - 1) + (isSame ? 0 : 1),
        isSwap ? at(rows[i - 2], j - 2) + 1 : Infinity,
      )
    }
    rows.push(row)
  }
  return at(rows[a.length], b.length)
}
