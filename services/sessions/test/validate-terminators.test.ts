import {
  CreateTerminatorV2Request,
  ctrlType,
  edgeType,
  InvalidTerminatorReason,
  type Outgoing,
  TerminatorPrecedence,
  type TerminatorToValidate,
  ValidateTerminatorsV2Request,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import type { RouterFeatures } from '../src/domain/router-features.js'
import type { Presence } from '../src/routers/router-presence.js'
import { openValidation } from '../src/terminators/validate-terminators.js'
import { type FakeRouter, fakeRouter, startTerminators } from './router-terminators.js'
import { log } from './store.js'

type Started = Awaited<ReturnType<typeof startTerminators>>

const insert = ({ db }: Started, ids: readonly string[], routerId = 'r1') =>
  db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address, session_id)
    select id, 'wiki', ${routerId}, 'edge', 'address of ' || id, 'of-alice' from unnest(${ids}::text[]) as id`)

const requested = (messages: readonly Outgoing[]): readonly TerminatorToValidate[] =>
  messages
    .filter(({ type }) => type === ctrlType.validateTerminatorsV2)
    .flatMap(({ body }) => ValidateTerminatorsV2Request.decode(Buffer.from(body ?? '')).terminators)

const report = (router: FakeRouter, invalid: readonly TerminatorToValidate[]) =>
  router.ask(ctrlType.validateTerminatorsV2Response, ValidateTerminatorsV2Response, {
    states: new Map(
      invalid.map(({ id, marker }) => [
        id,
        { ...{ valid: false, detail: '', marker }, reason: InvalidTerminatorReason.UNKNOWN_TERMINATOR },
      ]),
    ),
  })

const ids = async (started: Started) => (await started.rows()).map(({ id }) => String(id))

test('a router that connects is asked about all of its terminators, in chunks', async () => {
  await using started = await startTerminators()
  const many = Array.from({ length: 1200 }, (_, i) => `t${10_000 + i}`)
  await insert(started, many)
  await insert(started, ['other'], 'r2')
  await Promise.all([started.r1.connect(), started.r2.connect()])
  expect(started.r1.sent).toHaveLength(3)
  expect(requested(started.r1.sent).map(({ id }) => id)).toEqual(many)
  expect(requested(started.r1.sent)[0]).toMatchObject({ binding: 'edge', address: 'address of t10000' })
  expect(requested(started.r2.sent).map(({ id }) => id)).toEqual(['other'])
})

test('a terminator that its router does not know is deleted, others stay', async () => {
  await using started = await startTerminators()
  await insert(started, ['t1', 't2'])
  await insert(started, ['t3'], 'r2')
  await started.r1.connect()
  await started.r2.connect()
  const [t1, t3] = [requested(started.r1.sent), requested(started.r2.sent)].flatMap(([first]) => first ?? [])
  if (!t1 || !t3) throw new Error('not asked')
  await report(started.r1, [t1, t3]) // the latter belongs to another router
  expect(await ids(started)).toEqual(['t2', 't3'])
  expect(await started.audit()).toEqual(['r1: t1 deleted'])
})

test('a terminator that has changed since its router was asked is not deleted', async () => {
  await using started = await startTerminators()
  await insert(started, ['t1'])
  await started.r1.connect()
  const asked = requested(started.r1.sent)
  await started.db.query(sql`update terminator set updated_at = updated_at + interval '1 millisecond'`)
  await report(started.r1, asked)
  expect(await ids(started)).toEqual(['t1'])
})

test('a router that creates a terminator again right after it has reported it as unknown has it', async () => {
  await using started = await startTerminators()
  await insert(started, ['t1'])
  await started.db.query(sql`update terminator set host_id = 'alice', address = 't1'`)
  await started.r1.connect()
  const reporting = report(started.r1, requested(started.r1.sent))
  const creating = started.r1.ask(edgeType.createTerminatorV2, CreateTerminatorV2Request, {
    ...{ address: 't1', sessionToken: 'of-alice', apiSessionToken: '', fingerprints: [], cost: 0 },
    ...{ peerData: new Map(), precedence: TerminatorPrecedence.DEFAULT },
    ...{ instanceId: '', instanceSecret: Buffer.alloc(0) },
  })
  await Promise.all([reporting, creating])
  expect(await ids(started)).toEqual(['t1'])
})

const today: RouterFeatures = {
  hasDataModel: true,
  verifiesTokens: true,
  needsSignedSessions: true,
  isGrouped: true,
  comparesModel: true,
}
const isPostCreate = ({ body = Buffer.alloc(0) }: Outgoing): boolean =>
  ValidateTerminatorsV2Request.decode(body).postCreate

test('a router is asked about a new terminator some seconds later, at whichever replica it is', async () => {
  await using started = await startTerminators()
  await insert(started, ['t1', 't2'])
  await insert(started, ['t3'], 'r2')
  const sent: { readonly routerId: string; readonly message: Outgoing }[] = []
  await using validation = openValidation({
    db: started.db,
    messages: { send: (routerId, message) => void sent.push({ routerId, message }) },
    presence: { of: (routerId) => (routerId === 'r2' ? [{ features: today } as Presence] : []) },
    removeInvalid: async () => undefined,
    log,
    delayMs: 10,
  })
  for (const id of ['t1', 't3', 'deleted']) validation.validateSoon(id)
  while (sent.length < 2) await new Promise(setImmediate)
  expect(sent.map(({ routerId, message }) => [routerId, requested([message]).map(({ id }) => id)])).toEqual([
    ['r1', ['t1']],
    ['r2', ['t3']],
  ])
  expect(sent.map(({ message }) => isPostCreate(message))).toEqual([false, true])
})

test('a router of 2.x that connects answers from its own table', async () => {
  await using started = await startTerminators()
  await insert(started, ['t1'])
  const router = fakeRouter(() => started.concern, 'r1', today)
  await router.connect()
  await started.r1.connect()
  expect([router, started.r1].map(({ sent }) => sent.map(isPostCreate))).toEqual([[true], [false]])
})
