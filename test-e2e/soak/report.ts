import { appendFileSync } from 'node:fs'

/** The rules of a run. A rule without a check counts as failed. */
export const rules = {
  readBack: 'an acknowledged write is read back through every gateway',
  gone: 'what was deleted is not found again',
  listed: 'a list by id shows what exists and nothing else',
  visible: 'a client sees what its policies grant, at once at the gateway of the write',
  private: 'a private config reaches its identity alone',
  dialed: 'what is granted can be dialed',
  ended: 'a session ends with its grant',
  refused: 'a token is refused after its end',
  valid: 'a valid request is not refused',
  explained: 'no failure is unexplained',
  recovers: 'every process is ready again within 5 s after a fault',
  authorizes: 'every gateway authorizes again after a fault',
  kept: 'a failover loses no write that the standby had received',
  sessions: 'after a failover, gateways accept the tokens of the sessions in the database, and no others',
  flows: 'open connections between routers live through faults of the controller',
  follows: 'what a router with a data model receives keeps to the rules of routers',
  isolated: 'a router without grants gets no session, route, circuit or terminator',
  untouched: 'at rest, a hostile router has changed nothing of other routers',
  alive: 'no process ends but by a fault',
  memory: 'memory in the last quarter is within a tenth of that in the first, from five minutes on',
  agree: 'at rest, gateways agree and rows equal the model',
  views: 'at rest, views equal the policies',
  granted: 'at rest, every session has a grant',
  integrity: 'at rest, the integrity check finds nothing',
} as const
export type Rule = (typeof rules)[keyof typeof rules]

export interface Report {
  readonly operations: () => number
  operation(): void
  /** Counts a successful check of the rule. */
  passed(rule: Rule): void
  violated(rule: Rule, facts: object): void
  /** Records a duration. */
  observe(name: string, ms: number): void
  /** Counts an event that is neither a success nor a violation. */
  note(name: string): void
  /** One line of the log file. */
  log(event: string, facts?: object): void
  violations(): number
  /** Rules with their checks, latencies, notes; the last line counts rules: `N passed, N failed`. */
  summary(): string
}

/**
 * @param checked the rules that this run can check
 * @param situation facts for each violation, such as the current fault
 */
export function openReport(file: string, checked: readonly Rule[], situation: () => object): Report {
  const checks = new Map<Rule, number>()
  const violations = new Map<Rule, number>()
  const times = new Map<string, number[]>()
  const notes = new Map<string, number>()
  let operations = 0

  const log = (event: string, facts: object = {}): void =>
    appendFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), event, ...facts })}\n`)
  const add = <K>(map: Map<K, number>, key: K): void => void map.set(key, (map.get(key) ?? 0) + 1)
  const total = (): number => [...violations.values()].reduce((sum, count) => sum + count, 0)

  return {
    operations: () => operations,
    operation: () => {
      operations += 1
    },
    passed: (rule) => add(checks, rule),
    violated(rule, facts) {
      add(violations, rule)
      const line = JSON.stringify({ ...facts, ...situation() })
      console.log(`VIOLATED ${rule}: ${line}`)
      log('violated', { rule, facts, ...situation() })
    },
    observe(name, ms) {
      const list = times.get(name) ?? []
      times.set(name, list)
      list.push(ms)
    },
    note: (name) => add(notes, name),
    log,
    violations: total,
    summary() {
      const lines = checked.map((rule) => {
        const [passedChecks, broken] = [checks.get(rule) ?? 0, violations.get(rule) ?? 0]
        const verdict = broken > 0 ? 'FAILED' : passedChecks > 0 ? 'passed' : 'FAILED (never checked)'
        return `${verdict}  ${rule}: ${passedChecks} checks, ${broken} violations`
      })
      const latencies = [...times].map(([name, list]) => `${name}: ${percentiles(list)}`)
      const counted = [...notes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, n]) => `${name} ${n}`)
      const failed = lines.filter((line) => line.startsWith('FAILED')).length
      return [
        '',
        ...lines,
        '',
        `${operations} operations; ${counted.join(', ')}`,
        ...latencies,
        '',
        `${checked.length - failed} passed, ${failed} failed`,
      ].join('\n')
    },
  }
}

function percentiles(list: number[]): string {
  list.sort((a, b) => a - b)
  const at = (share: number): number =>
    Math.round(list[Math.min(list.length - 1, Math.floor(list.length * share))] ?? 0)
  return `n ${list.length}, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`
}

/** What a client may see after a failover that has lost writes. */
const ofLosses: ReadonlySet<Rule> = new Set([
  rules.readBack,
  rules.gone,
  rules.listed,
  rules.visible,
  rules.dialed,
  rules.ended,
  rules.refused,
  rules.valid,
])

/** Counts violations that a lost write explains as notes while there may be lost writes. */
export const excusing = (report: Report, mayBeLost: () => boolean): Report => ({
  ...report,
  violated(rule, facts) {
    if (!mayBeLost() || !ofLosses.has(rule)) return report.violated(rule, facts)
    report.note('not judged after a failover')
    report.log('excused', { rule, facts })
  },
})
