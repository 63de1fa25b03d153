import { authenticator, readSchemaOf, tagsSchema } from '@overlay/model'
import type { Services } from '../clients/services.js'
import { detail, empty } from '../http/answer.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { type RequestContext, takes } from '../http/exchange.js'
import { list, listRequest, paging } from './list.js'
import type { Handlers } from './operations.js'

const text = (minLength: number, type: unknown) => ({ type, minLength, maxLength: 100 })

const credentials = (title: string, type: unknown, required: readonly string[]) =>
  json<Readonly<Record<string, unknown>>>('authenticator', {
    title,
    type: 'object',
    properties: {
      currentPassword: text(5, 'string'),
      password: text(5, type),
      tags: tagsSchema,
      username: text(4, type),
    },
    required,
  })

const replaceBody = credentials('authenticatorUpdateWithCurrent', 'string', [
  'currentPassword',
  'password',
  'username',
])
const patchBody = credentials('authenticatorPatchWithCurrent', ['string', 'null'], ['currentPassword'])

/** Operations of callers on their own authenticators. */
export function ownAuthenticators({ identity }: Services): Handlers {
  const update = async (
    c: RequestContext,
    id: string,
    body: Readonly<Record<string, unknown>>,
    names: readonly string[],
  ): Promise<Response> => {
    const mask = names.filter((name) => name !== 'currentPassword')
    const request = { ref: { kind: 'authenticators', id }, json: jsonBytes(body), mask }
    await identity.updateOwnAuthenticator(request, callContext(c))
    return empty(c)
  }
  const about = { data: readSchemaOf(authenticator) }
  return {
    'GET /current-identity/authenticators': {
      query: paging,
      about: { ...about, page: true },
      handle: (c) => list(c, authenticator, listRequest(c, 'authenticators'), identity.listOwnAuthenticators),
    },
    'GET /current-identity/authenticators/{id}': {
      about,
      handle: async (c, { id }) =>
        detail(c, (await identity.getOwnAuthenticator({ kind: 'authenticators', id }, callContext(c))).json),
    },
    'PUT /current-identity/authenticators/{id}': takes(replaceBody, (c, { id }, body) =>
      update(c, id, body, ['username', 'password', 'tags']),
    ),
    'PATCH /current-identity/authenticators/{id}': takes(patchBody, (c, { id }, body) =>
      update(
        c,
        id,
        body,
        Object.keys(body).filter((name) => body[name] !== null),
      ),
    ),
  }
}
