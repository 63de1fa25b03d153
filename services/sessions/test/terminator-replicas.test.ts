import {
  CreateTerminatorResult,
  CreateTerminatorV2Request,
  CreateTerminatorV2Response,
  ctrlType,
  edgeType,
  InvalidTerminatorReason,
  TerminatorPrecedence,
  ValidateTerminatorsV2Request,
  ValidateTerminatorsV2Response,
} from '@overlay/channel'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { fakeIdentity } from './access.js'
import { startControlNetwork } from './control.js'
import { ownersFor } from './owners.js'
import { connectRouter, type TestRouter } from './test-router.js'

async function create({ channel }: TestRouter, sessionToken: string): Promise<CreateTerminatorV2Response> {
  const body = CreateTerminatorV2Request.encode({
    ...{ address: 't1', sessionToken, apiSessionToken: '', fingerprints: ['f1'], peerData: new Map() },
    ...{ cost: 0, precedence: TerminatorPrecedence.DEFAULT, instanceId: '', instanceSecret: Buffer.alloc(0) },
  }).finish()
  const reply = await channel.request({ type: edgeType.createTerminatorV2, body }, 30_000)
  return CreateTerminatorV2Response.decode(reply.body)
}

test('a router that reconnects to another replica keeps its terminators, unless it does not know them', async () => {
  await using network = await startControlNetwork({ hasBus: true })
  const identity = fakeIdentity()
  const key = await network.createRouter('r')
  const owners = ownersFor(identity, [key.id])
  const one = await network.replica('one', { owners })
  const two = await network.replica('two', { owners })
  const { id } = identity.login('alice', 'f1')
  await network.db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id)
    values ('s1', 'token', 'Bind', ${id}, 'wiki', 'alice')`)

  const router = await connectRouter({ port: one.port, key })
  expect(await create(router, 'unknown')).toMatchObject({
    terminatorId: 't1',
    result: CreateTerminatorResult.INVALID_SESSION,
  })
  expect(await create(router, 'token')).toMatchObject({ result: CreateTerminatorResult.SUCCESS })
  router.channel.close('moves')

  const again = await connectRouter({ port: two.port, key })
  const { body } = await again.message(ctrlType.validateTerminatorsV2)
  const { terminators } = ValidateTerminatorsV2Request.decode(body)
  expect(terminators).toMatchObject([{ id: 't1', binding: 'edge', address: 't1' }])
  expect(await create(again, 'token')).toMatchObject({ result: CreateTerminatorResult.SUCCESS })
  const { rows } = await network.db.query(sql`select id, router_id from terminator`)
  expect(rows).toEqual([{ id: 't1', router_id: key.id }])

  const unknown = { valid: false, detail: '', reason: InvalidTerminatorReason.UNKNOWN_TERMINATOR }
  again.channel.send({
    type: ctrlType.validateTerminatorsV2Response,
    body: ValidateTerminatorsV2Response.encode({
      states: new Map(terminators.map((one) => [one.id, { ...unknown, marker: one.marker }])),
    }).finish(),
  })
  while ((await network.db.query(sql`select from terminator`)).rowCount);
})
