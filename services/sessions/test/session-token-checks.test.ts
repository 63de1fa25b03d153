import { ownContext } from '@overlay/rpc'
import { newId } from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkSessionToken } from '../src/methods/check-session-token.js'
import { TOKEN_MS, testTokens } from './session-tokens.js'
import { startStore } from './store.js'

let store: Awaited<ReturnType<typeof startStore>>
let now = Date.now()
let signer: Awaited<ReturnType<typeof testTokens>>
beforeAll(async () => {
  store = await startStore()
  signer = await testTokens({ now: () => now })
})
afterAll(async () => {
  await signer[Symbol.asyncDispose]()
  await store[Symbol.asyncDispose]()
})

async function makeSession() {
  const session = {
    ...{
      id: newId('cuid'),
      token: newId('cuid'),
      apiSessionId: newId('cuid'),
      identityId: 'alice',
      serviceId: 'wiki',
    },
    type: 'Bind' as const,
  }
  const { id, token, apiSessionId, identityId, serviceId, type } = session
  await store.changeLog.db.query(sql`
    insert into session (id, token, type, api_session_id, service_id, identity_id)
    values (${id}, ${token}, ${type}, ${apiSessionId}, ${serviceId}, ${identityId})`)
  return { ...session, signed: (await signer.tokens.sign(session)) ?? '' }
}

const check = (token: string, apiSessionId: string, serviceId = 'wiki'): Promise<unknown> => {
  const context = ownContext(AbortSignal.timeout(30_000))
  const caller = { ...context.caller, apiSessionId }
  const { tokens } = signer
  return checkSessionToken({ changeLog: store.changeLog, tokens })(
    { token, serviceId },
    { ...context, caller },
  )
}
const notFound = expect.objectContaining({ code: 'NOT_FOUND' })

test('the tokens of a session are accepted from its API session, for its service, until it ends', async () => {
  const { id, token, signed, apiSessionId: of } = await makeSession()
  for (const one of [token, signed]) {
    expect(await check(one, of)).toEqual({ sessionId: id })
    await expect(check(one, 'other')).rejects.toEqual(notFound)
    await expect(check(one, of, 'blog')).rejects.toEqual(notFound)
  }
  await store.changeLog.db.query(sql`delete from session where id = ${id}`)
  for (const one of [token, signed, id]) await expect(check(one, of)).rejects.toEqual(notFound)
})

test('a token that no key of the network has signed is refused', async () => {
  const { signed, apiSessionId: of } = await makeSession()
  for (const one of ['eyJ', `${signed.slice(0, -4)}AAAA`])
    await expect(check(one, of)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
})

test('clients ask for another token before routers refuse theirs', async () => {
  const { signed, ...session } = await makeSession()
  now += TOKEN_MS / 2
  const { id, apiSessionId: of } = session
  await expect(check(signed, of)).rejects.toEqual(notFound)
  expect(await check((await signer.tokens.sign(session)) ?? '', of)).toEqual({ sessionId: id })
})
