import type { Channel } from '@overlay/channel'
import { expect, test } from 'vitest'
import type { RouterChannel } from '../channel/router-channel.js'
import { NO_FEATURES } from '../domain/router-features.js'
import { openRouterSessions } from './router-sessions.js'

const routerOf = (routerId: string): RouterChannel => ({
  ...{ routerId, fingerprint: '', connectedAt: new Date(), isReconnection: false, features: NO_FEATURES },
  linkListeners: Buffer.alloc(0),
  channel: { closed: new AbortController().signal } as Channel,
})

test('API sessions of one router are opened one after the other, also after a failure, and of others meanwhile', async () => {
  const underWay: string[] = []
  const most = new Map<string, number>()
  let calls = 0
  const sessions = openRouterSessions({
    identity: {
      async openRouterSession({ routerId }) {
        underWay.push(routerId)
        const own = underWay.filter((id) => id === routerId).length
        most.set(routerId, Math.max(own, most.get(routerId) ?? 0))
        most.set('all', Math.max(underWay.length, most.get('all') ?? 0))
        await new Promise(setImmediate)
        underWay.splice(underWay.indexOf(routerId), 1)
        if (++calls === 3) throw new Error('away')
        const members = { id: 's', token: 't', identityId: routerId, identityName: '', configTypes: [] }
        return { session: { ...members, timeoutSeconds: 1 } as never, hosting: Buffer.from('{}') }
      },
    },
    apiSessions: { byId: () => ({}) },
  })
  const [a, b] = [routerOf('a'), routerOf('b')]
  const opened = await Promise.allSettled([a, b, a, b, a, b].map((router) => sessions.open(router, {})))
  expect(opened.filter(({ status }) => status === 'rejected')).toHaveLength(1)
  expect([...most].sort()).toEqual([
    ['a', 1],
    ['all', 2],
    ['b', 1],
  ])
  expect(await sessions.of(a)).toMatchObject({ identityId: 'a' })
})
