import { createLocation, named, object, time } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { created, empty } from '../http/answer.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/exchange.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

const until = (name: string, title = name) =>
  json<{ readonly expiresAt: string }>(name, named(title, object({ expiresAt: time })))

const msOf = ({ expiresAt }: { readonly expiresAt: string }): number => new Date(expiresAt).getTime()

/** New tokens for enrollments and for repeated enrollment. */
export const enrollments = ({ identity, pki, sessions }: Services): Handlers => ({
  // differs: the answer names the enrollment, which has a new token
  'POST /enrollments/{id}/refresh': takes(
    until('refresh', 'enrollmentRefresh'),
    async (c, { id }, body) => {
      await pki.refreshEnrollment({ id, expiresAtMs: msOf(body) }, callContext(c))
      const links = { self: { href: `./enrollments/${id}` } }
      return send(c, 200, JSON.stringify({ data: { _links: links, id }, meta: {} }))
    },
    { about: { data: createLocation, envelope: 'createEnvelope' } },
  ),

  'POST /authenticators/{id}/re-enroll': takes(
    until('reEnroll'),
    async (c, { id }, body) => {
      const { id: enrollmentId } = await identity.reEnrollAuthenticator(
        { id, expiresAtMs: msOf(body) },
        callContext(c),
      )
      return created(c, 'enrollments', enrollmentId)
    },
    { about: { status: 201 } },
  ),

  'POST /edge-routers/{id}/re-enroll': async (c, { id }) => {
    await sessions.reEnrollEdgeRouter({ kind: 'edge-routers', id }, callContext(c))
    return empty(c)
  },
})
