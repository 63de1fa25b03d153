import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { components } from './workloads.js'

// Prometheus itself says which alerts fire for series that are made up here: `promtool`, of its Debian package.

const run = promisify(execFile)
const alertsFile = join(import.meta.dirname, '../../deploy/kustomize/components/monitoring/alerts.yaml')
/** Between scrapes, if a case does not say otherwise. */
const scrape = 15

let unavailable: unknown
beforeAll(async () => {
  unavailable = await run('promtool', ['--version']).then(
    () => undefined,
    () => 'skipped: promtool is not installed (Debian package prometheus)',
  )
  if (unavailable) console.log(unavailable)
})

/** The values of a series, one for each scrape: `0x20 1x20` is 21 times 0, then 21 times 1; `_` is no value. */
type Series = Readonly<Record<string, string>>

interface Case {
  readonly name: string
  readonly series: Series
  /** Seconds between scrapes. */
  readonly interval?: number
  readonly at?: string
  /** How many of each alert fire then. */
  readonly fire: Readonly<Record<string, number>>
}

/** What promtool says: `SUCCESS` if so many of each alert fire. */
async function firing({ series, at = '10m', interval = scrape, fire }: Case): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-alerts-'))
  const { spec } = parse(await readFile(alertsFile, 'utf8'))
  const rules = { groups: spec.groups }
  const names = Object.entries(fire)
  // how often it fires is counted, so that labels and texts need not be repeated here
  const expression = (alert: string) => `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`
  const tests = {
    rule_files: ['rules.yaml'],
    evaluation_interval: '10s',
    tests: [
      {
        interval: `${interval}s`,
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        promql_expr_test: names.map(([alert, count]) => ({
          expr: expression(alert),
          eval_time: at,
          exp_samples: [{ labels: '{}', value: count }],
        })),
      },
    ],
  }
  try {
    await writeFile(join(directory, 'rules.yaml'), stringify(rules))
    await writeFile(join(directory, 'tests.yaml'), stringify(tests))
    await run('promtool', ['check', 'rules', 'rules.yaml'], { cwd: directory })
    const { stdout } = await run('promtool', ['test', 'rules', 'tests.yaml'], { cwd: directory }).catch(
      (err: { stdout: string; stderr: string }) => ({ stdout: err.stdout + err.stderr }),
    )
    return stdout
  } finally {
    await rm(directory, { recursive: true })
  }
}

const passes = expect.stringContaining('SUCCESS')
const of = { job: 'overlay', namespace: 'overlay', process: 'policy-1', component: 'policy' }
const labels = (more: Readonly<Record<string, string>> = {}) =>
  `{${Object.entries({ ...of, ...more })
    .map(([name, value]) => `${name}="${value}"`)
    .join()}}`
/** A time that is so old at each scrape. promtool begins at the time 0. */
const aged = (seconds: number, interval = scrape) => `-${seconds}+${interval}x60`

const cases: readonly Case[] = [
  {
    name: 'times that are a few seconds old at each scrape, almost a minute after one',
    series: {
      [`overlay_database_answered_timestamp_seconds${labels({ schema: 'policy' })}`]: aged(2, 60),
      [`overlay_follow_heard_timestamp_seconds${labels({ schema: 'identity' })}`]: aged(6, 60),
    },
    interval: 60,
    at: '10m50s',
    fire: { OverlayDatabaseAway: 0, OverlayOwnerSilent: 0 },
  },
  {
    name: 'a database and an owner that have not answered since a minute',
    series: {
      [`overlay_database_answered_timestamp_seconds${labels({ schema: 'policy' })}`]: '0+15x20 300x10',
      [`overlay_follow_heard_timestamp_seconds${labels({ schema: 'identity' })}`]: '0+15x20 300x10',
    },
    at: '6m40s',
    fire: { OverlayDatabaseAway: 1, OverlayOwnerSilent: 1 },
  },
  {
    name: 'steady changes, which a follower has applied at its scrape and the owner has moved on from',
    series: {
      [`overlay_change_log_position${labels({ process: 'identity-1', schema: 'identity' })}`]: '300+300x40',
      [`overlay_follow_position${labels({ schema: 'identity' })}`]: '100+300x40',
    },
    fire: { OverlayChangesLate: 0 },
  },
  {
    name: 'a follower that stands still',
    series: {
      [`overlay_change_log_position${labels({ process: 'identity-1', schema: 'identity' })}`]: '300+300x40',
      [`overlay_follow_position${labels({ schema: 'identity' })}`]: '300+300x10 3300x30',
      [`overlay_follow_position${labels({ process: 'policy-2', schema: 'identity' })}`]: '300+300x40',
      [`overlay_change_log_position${labels({ namespace: 'other', schema: 'identity' })}`]: '1x40',
      [`overlay_follow_position${labels({ namespace: 'other', schema: 'identity' })}`]: '1x40',
    },
    at: '8m',
    fire: { OverlayChangesLate: 1 },
  },
  {
    name: 'the first defect, the first refused peer and the first change that cannot be applied',
    series: {
      [`overlay_defects_total${labels()}`]: '0x20 1x20',
      [`overlay_rpc_refused_total${labels({ method: 'none', caller: 'none' })}`]: '_x20 1x20',
      [`overlay_follow_poisonous_total${labels({ schema: 'pki', kind: 'ca', outcome: 'unknown' })}`]:
        '_x20 1x20',
    },
    at: '6m',
    fire: { OverlayDefect: 1, OverlayPeerRefused: 1, OverlayChangePoisonous: 1 },
  },
  {
    name: 'the same an hour ago',
    series: {
      [`overlay_defects_total${labels()}`]: '0x5 1x300',
      [`overlay_rpc_refused_total${labels({ method: 'none', caller: 'none' })}`]: '_x5 1x300',
      [`overlay_follow_poisonous_total${labels({ schema: 'pki', kind: 'ca', outcome: 'unknown' })}`]:
        '_x5 1x300',
    },
    at: '60m',
    fire: { OverlayDefect: 0, OverlayPeerRefused: 0, OverlayChangePoisonous: 0 },
  },
  {
    name: 'loads that fail again and again',
    series: {
      [`overlay_follow_load_failed_total${labels({ schema: 'policy', follower: 'policy memory', cause: 'error' })}`]:
        '_x10 1+7x30',
      [`overlay_follow_load_failed_total${labels({ schema: 'identity', follower: 'policy memory', cause: 'unavailable' })}`]:
        '_x10 1+7x30',
      [`overlay_follow_load_failed_total${labels({ schema: 'identity', follower: 'policy memory', cause: 'error' })}`]:
        '0x10 1x30',
    },
    fire: { OverlayLoadFails: 1 },
  },
  {
    name: 'all components',
    series: Object.fromEntries(
      components.map((component) => [`up${labels({ component, process: `${component}-1` })}`, '1x60']),
    ),
    fire: { OverlayNothingScraped: 0, OverlayComponentMissing: 0, OverlayProcessDown: 0 },
  },
  {
    name: 'a component without a process, in one of two namespaces',
    series: Object.fromEntries(
      components.flatMap((component) => [
        [`up${labels({ component, process: `${component}-1` })}`, component === 'pki' ? '1x10' : '1x60'],
        [`up${labels({ namespace: 'other', component, process: `${component}-1` })}`, '1x60'],
      ]),
    ),
    at: '14m',
    fire: { OverlayNothingScraped: 0, OverlayComponentMissing: 1 },
  },
  {
    name: 'the processes of a launcher, which have no components',
    series: {
      'up{job="overlay",instance="127.0.0.1:9962"}': '1x60',
      'overlay_process_up{job="overlay",process="overlay"}': '1x30 0x30',
    },
    at: '14m',
    fire: { OverlayNothingScraped: 0, OverlayComponentMissing: 0, OverlayProcessDown: 1 },
  },
  { name: 'nothing', series: {}, fire: { OverlayNothingScraped: 1 } },
]

describe('alerts fire when they should, and only then', () => {
  for (const one of cases)
    test(one.name, async ({ skip }) => {
      if (unavailable) skip()
      expect(await firing(one)).toEqual(passes)
    })
})
