import { setTimeout as pause } from 'node:timers/promises'
import type { Administrator } from './administrator.js'
import type { Run } from './caller.js'
import { adopt, differences, emptyModel, grants, type Model, type Row, visible } from './model.js'
import type { Random } from './random.js'
import { rules } from './report.js'
import type { Worker } from './worker.js'

const checkedKinds = [
  'identities',
  'services',
  'service-policies',
  'edge-router-policies',
  'service-edge-router-policies',
  'configs',
  'sessions',
  'api-sessions',
  'edge-routers',
  'enrollments',
  'authenticators',
] as const
type Rows = Record<(typeof checkedKinds)[number], readonly Row[]>

const SETTLE_MS = 2500
const MAX_IDENTITIES = 40
const CHECK_MS = 120_000

/** Checks everything while no client works and no fault is active. */
export async function checkAtRest(
  run: Run,
  admin: Administrator,
  workers: readonly Worker[],
  random: Random,
): Promise<void> {
  await pause(SETTLE_MS)
  const rows = await checkCounts(run, admin)
  checkModels(run, rows, workers)
  const network = emptyModel()
  adopt(network, rows)
  await checkViews(run, admin, network, random)
  await checkClients(run, network, workers)
  checkSessions(run, rows, network)
  await checkIntegrity(run, admin)
}

async function checkCounts({ report }: Run, admin: Administrator): Promise<Rows> {
  const actual: Partial<Record<keyof Rows, readonly Row[]>> = {}
  for (const kind of checkedKinds) {
    const [one, two] = [await admin.all<Row>(0, kind), await admin.all<Row>(1, kind)]
    const ids = (rows: readonly Row[]): string =>
      rows
        .map(({ id }) => id)
        .sort()
        .join()
    const isWhole = new Set(one.rows.map(({ id }) => id)).size === one.total && two.rows.length === two.total
    if (isWhole && ids(one.rows) === ids(two.rows)) report.passed(rules.agree)
    else {
      const lengths = {
        rows: one.rows.length,
        total: one.total,
        there: two.rows.length,
        thereTotal: two.total,
      }
      report.violated(rules.agree, { kind, ...lengths })
    }
    actual[kind] = one.rows
  }
  return actual as Rows
}

function checkModels({ report }: Run, rows: Rows, workers: readonly Worker[]): void {
  for (const worker of workers) {
    if (worker.isUnsure()) continue
    const own = (list: readonly Row[]) => list.filter(({ name }) => name.startsWith(`${worker.prefix}-`))
    const actual = differences(worker.model, {
      identities: own(rows.identities),
      services: own(rows.services),
      'service-policies': own(rows['service-policies']),
    })
    if (actual.length === 0) report.passed(rules.agree)
    for (const difference of actual) report.violated(rules.agree, { difference })
  }
}

const expectedServices = (network: Model, identityId: string): string => visible(network, identityId).join()

const idsOf = (data: unknown): string =>
  (Array.isArray(data) ? (data as readonly Row[]) : [])
    .map(({ id }) => id)
    .sort()
    .join()

async function checkViews(run: Run, admin: Administrator, network: Model, random: Random): Promise<void> {
  const chosen = [...network.identities.keys()].filter(
    () => random.int(network.identities.size) < MAX_IDENTITIES,
  )
  for (const id of chosen) {
    const expected = expectedServices(network, id)
    for (const gateway of run.gateways.keys()) {
      const linked = await admin.insist(gateway, 'GET', `/identities/${id}/services?limit=500`)
      const actual = idsOf(linked.data)
      if (linked.status === 200 && actual === expected) run.report.passed(rules.views)
      else
        run.report.violated(rules.views, { identityId: id, gateway, expected, actual, status: linked.status })
    }
  }
}

async function checkClients(
  { report, gateways }: Run,
  network: Model,
  workers: readonly Worker[],
): Promise<void> {
  for (const worker of workers) {
    if (worker.isUnsure()) continue
    for (const [identityId, endpoint] of worker.endpoints)
      for (const gateway of gateways.keys()) {
        const services = await endpoint.services(gateway)
        if (!services) continue
        const [expected, actual] = [expectedServices(network, identityId), idsOf(services)]
        if (expected === actual) report.passed(rules.views)
        else report.violated(rules.views, { identityId, gateway, expected, actual, of: 'the client API' })
      }
  }
}

interface Session extends Row {
  readonly identityId: string
  readonly serviceId: string
  readonly apiSessionId: string
}

function checkSessions({ report }: Run, rows: Rows, network: Model): void {
  const apiSessions = new Set(rows['api-sessions'].map(({ id }) => id))
  for (const session of rows.sessions as readonly Session[]) {
    const { id, identityId, serviceId, apiSessionId, type } = session
    const isGranted = grants(network, identityId, serviceId, type === 'Bind' ? 'Bind' : 'Dial')
    if (isGranted && apiSessions.has(apiSessionId)) report.passed(rules.granted)
    else report.violated(rules.granted, { id, identityId, serviceId, type, isGranted })
  }
}

interface Results {
  readonly inProgress: boolean
  readonly error: string | null
  readonly results: readonly { readonly description: string }[] | null
}

async function checkIntegrity({ report }: Run, admin: Administrator): Promise<void> {
  const started = await admin.insist(0, 'POST', '/database/check-data-integrity')
  if (started.status !== 202)
    return report.violated(rules.integrity, { status: started.status, error: started.error })
  const since = performance.now()
  for (;;) {
    await pause(100)
    const { status, data } = await admin.insist(1, 'GET', '/database/data-integrity-results')
    const results = data as Results
    if (status === 200 && !results.inProgress) {
      report.observe('integrity check', performance.now() - since)
      const actual = (results.results ?? []).map(({ description }) => description)
      if (results.error || actual.length > 0)
        report.violated(rules.integrity, { error: results.error, actual })
      else report.passed(rules.integrity)
      return
    }
    if (performance.now() - since > CHECK_MS) return report.violated(rules.integrity, { status, hangs: true })
  }
}
