import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestDatabase, testDatabase } from '@overlay/launcher/testing'
import { type Context, Fault, type Finding, ownContext } from '@overlay/rpc'
import { type Database, openAdvisoryLock, openDatabase } from '@overlay/store/postgres'
import pino from 'pino'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openJobMethods } from '../src/jobs/job-methods.js'
import type { Maintenance } from '../src/jobs/jobs.js'
import { removeUnfinished } from '../src/jobs/save-snapshot.js'
import { maintenanceService } from '../src/maintenance-service.js'

const system = (): Context => ownContext(new AbortController().signal)

type Owner = Maintenance[string]

let database: TestDatabase
let db: Database
let snapshots: string
let opened: AsyncDisposable[]
beforeAll(async () => {
  database = await testDatabase('identity')
  db = openDatabase(database.urlOf('identity'), 'identity')
})
afterAll(async () => {
  await db[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(async () => {
  await db.query(sql`delete from job`)
  snapshots = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  opened = []
})
afterEach(async () => {
  for (const one of opened.reverse()) await one[Symbol.asyncDispose]()
  await rm(snapshots, { recursive: true })
})

/** Another replica; `pki` is what it asks beside its own schema. */
function replica(
  pki: Partial<Owner> = {},
  { maxBytes = 1 << 20, limitMs = 60_000, hasDirectory = true } = {},
) {
  const databaseUrl = database.urlOf('identity')
  const directory = hasDirectory ? snapshots : undefined
  const own = maintenanceService({ schema: 'identity', databaseUrl, snapshots: directory, checks: [] })
  const jobDeps = {
    db,
    databaseUrl,
    maintenance: { identity: own, pki: { check: nothing, export: nothing, ...pki } },
    snapshots: directory,
    snapshotLimitMs: limitMs,
    snapshotMaxBytes: maxBytes,
    log: pino({ enabled: false }),
  }
  const jobs = openJobMethods(jobDeps)
  opened.push(jobs)
  return {
    jobs,
    start: (fix = false) => jobs.methods.startIntegrityRun({ fix }, system()),
    results: () => jobs.methods.getIntegrityRun({}, system()),
    snapshot: (context = system()) => jobs.methods.takeSnapshot({}, context),
    removeUnfinished: () => removeUnfinished({ db, snapshots }),
  }
}

async function* nothing(): AsyncGenerator<never> {}

/** A check that yields the findings of the test, and ends with it. */
function slowCheck() {
  const queue: Finding[][] = []
  let go: () => void = () => undefined
  let isOver = false
  const check: Owner['check'] = async function* (_request, { signal }) {
    while (!isOver || queue.length > 0) {
      for (const findings of queue.splice(0)) yield { findings }
      if (isOver) return
      await new Promise<void>((resolve) => {
        go = resolve
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
      signal.throwIfAborted()
    }
  }
  return {
    check,
    find(...findings: Finding[]) {
      queue.push(findings)
      go()
    },
    end() {
      isOver = true
      go()
    },
  }
}

const finding = (description: string, fixed = false): Finding => ({ description, fixed })
const refused = expect.objectContaining({ code: 'RATE_LIMITED', retryAfterSeconds: expect.any(Number) })
const ended = async ({ results }: Pick<ReturnType<typeof replica>, 'results'>) => {
  await expect.poll(async () => (await results()).inProgress).toBe(false)
  return results()
}

test('before the first run the results are empty', async () => {
  expect(await replica().results()).toEqual({
    inProgress: false,
    fixing: false,
    tooMany: false,
    startedAtMs: 0,
    endedAtMs: 0,
    error: '',
    findings: [],
  })
})

test('one run at a time over all replicas, whether it repairs or not; the next begins when it has ended', async () => {
  const slow = slowCheck()
  const [one, other] = [replica(slow), replica()]
  await one.start()
  await expect(one.start()).rejects.toEqual(refused)
  await expect(other.start(true)).rejects.toEqual(refused)
  expect(await other.results()).toMatchObject({ inProgress: true, fixing: false, endedAtMs: 0 })
  slow.end()
  expect(await ended(other)).toMatchObject({ error: '', findings: [] })
  await other.start(true)
  expect(await ended(one)).toMatchObject({ fixing: true, error: '' })
})

test('of two that begin at the same time one wins', async () => {
  const slow = slowCheck()
  const replicas = [replica(slow), replica(slow), replica(slow)]
  const outcomes = await Promise.allSettled(replicas.map(({ start }) => start()))
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
})

test('findings are there while the run is under way, and those of the run before are not', async () => {
  const slow = slowCheck()
  const one = replica(slow)
  await one.start()
  slow.find(finding('first'), finding('second', true))
  await expect.poll(async () => (await one.results()).findings).toHaveLength(2)
  expect(await one.results()).toMatchObject({
    inProgress: true,
    findings: [finding('first'), finding('second', true)],
  })
  slow.end()
  await ended(one)
  await replica().start()
  expect((await ended(one)).findings).toEqual([])
})

test.each([
  [1000, 1000, false],
  [1500, 1000, true],
])('of %i findings %i are listed', async (found, listed, tooMany) => {
  const slow = slowCheck()
  const one = replica(slow)
  slow.find(...Array.from({ length: found - 700 }, (_, i) => finding(`a${i}`)))
  slow.find(...Array.from({ length: 700 }, (_, i) => finding(`b${i}`)))
  slow.end()
  await one.start()
  const results = await ended(one)
  expect([results.findings.length, results.tooMany]).toEqual([listed, tooMany])
})

test.each([
  ['a part that does not answer', new Fault('UNAVAILABLE'), 'A part of the controller does not answer'],
  ['what only the log may know', new Error('select secret'), 'An unhandled error occurred'],
])('a run ends with its first failure: %s', async (_which, err, text) => {
  const one = replica({ check: () => failing(err) })
  await one.start()
  expect(await ended(one)).toMatchObject({ error: text, findings: [] })
})

test('a run whose replica is cut off from the database is over, and its successor is not disturbed', async () => {
  const slow = slowCheck()
  const one = replica(slow)
  await one.start()
  await using owner = openDatabase(database.ownerUrl, 'identity')
  await owner.query(
    sql`
      select pg_terminate_backend(pid) from pg_stat_activity
       where application_name = 'identity job' and datname = current_database()`,
  )
  expect((await ended(one)).error).not.toBe('')
  const next = slowCheck()
  const other = replica(next)
  await other.start()
  slow.find(finding('too late'))
  next.find(finding('in time'))
  next.end()
  expect((await ended(other)).findings).toEqual([finding('in time')])
})

test('a run whose replica does not record its end is ended by the next reader', async () => {
  await db.query(sql`
    insert into job (name, run, is_fixing, started_at) values ('integrity', gen_random_uuid(), true, now())`)
  const one = replica()
  expect(await one.results()).toMatchObject({
    inProgress: false,
    fixing: true,
    error: 'the process that was at it is gone',
  })
  await one.start()
})

test('a process that stops ends its run first', async () => {
  const slow = slowCheck()
  const one = replica(slow)
  await one.start()
  await one.jobs[Symbol.asyncDispose]()
  expect(await replica().results()).toMatchObject({
    inProgress: false,
    error: expect.stringContaining('stopped'),
  })
})

test('a snapshot is a directory that appears when it is whole', async () => {
  const one = replica()
  const { name } = await one.snapshot()
  expect(await readdir(snapshots)).toEqual([name])
  expect((await readdir(join(snapshots, name))).sort()).toEqual(['identity', 'manifest.json'])
})

test('of two snapshots at once one wins, and for a minute there is no other', async () => {
  const outcomes = await Promise.allSettled([replica().snapshot(), replica().snapshot()])
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  await expect(replica().snapshot()).rejects.toEqual(refused)
  await db.query(sql`update job set ended_at = ended_at - interval '61 seconds'`)
  await replica().snapshot()
})

test('a snapshot and a check do not wait for each other', async () => {
  const slow = slowCheck()
  const one = replica(slow)
  await one.start()
  await one.snapshot()
  slow.end()
  await ended(one)
})

test.each([
  ['one owner fails', { pki: { export: () => failing() } }],
  ['it grows too large', { limits: { maxBytes: 10 } }],
  ['it takes too long', { pki: { export: endless }, limits: { limitMs: 50 } }],
])('nothing stays of a snapshot when %s, and the next may begin at once', async (_why, options) => {
  const { pki, limits } = options as { pki?: Partial<Owner>; limits?: object }
  await expect(replica(pki, limits).snapshot()).rejects.toThrow()
  expect(await readdir(snapshots)).toEqual([])
  await replica().snapshot()
})

async function* failing(err = new Error('disk full')): AsyncGenerator<never> {
  yield await Promise.reject(err)
}

async function* endless(_request: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<never> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
}

test('a caller that does not wait for the end of a snapshot learns that it goes on, and so it does', async () => {
  const abort = new AbortController()
  const one = replica({
    async *export() {
      abort.abort()
      yield* nothing()
    },
  })
  await expect(one.snapshot({ ...system(), signal: abort.signal })).rejects.toEqual(
    expect.objectContaining({ code: 'TIMEOUT', detail: 'the snapshot continues' }),
  )
  await expect
    .poll(async () => (await readdir(snapshots)).map((name) => name.endsWith('.unfinished')))
    .toEqual([false])
})

test('what a replica left behind that died at a snapshot is removed, what one is at is not', async () => {
  const [dead, alive] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']
  opened.push(await openAdvisoryLock(database.urlOf('identity'), 'identity', alive))
  for (const name of [`x-${dead}.unfinished`, `x-${alive}.unfinished`, `x-${dead}`, 'other'])
    await mkdir(join(snapshots, name))
  await replica().removeUnfinished()
  expect((await readdir(snapshots)).sort()).toEqual(['other', `x-${dead}`, `x-${alive}.unfinished`].sort())
})

test('without a directory, snapshots are refused, and no job begins', async () => {
  const one = replica()
  const { snapshot } = replica({}, { hasDirectory: false })
  await expect(snapshot()).rejects.toMatchObject({
    code: 'METHOD_NOT_ALLOWED',
    detail: expect.stringContaining('OVERLAY_SNAPSHOTS'),
  })
  expect(await readdir(snapshots)).toEqual([])
  await one.snapshot() // the interval between snapshots has not begun
})
