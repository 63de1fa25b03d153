import type { RequestContext } from '../http/exchange.js'
import { isClient } from './provider.js'
import { parameterOf } from './requests.js'
import { OauthRefusal } from './responses.js'

/**
 * The client of a request, by HTTP Basic with an empty secret or by a parameter. Clients have no secrets, so any secret
 * is wrong.
 * @throws OauthRefusal invalid_client, with 401, or 400 if `asBadRequest` and the request does not use HTTP Basic
 */
export function clientOf(
  c: RequestContext,
  form: URLSearchParams,
  { onlyBasic = false, asBadRequest = false } = {},
): string {
  const basic = basicOf(c)
  const refused = (description?: string): OauthRefusal =>
    new OauthRefusal(
      'invalid_client',
      description,
      asBadRequest && !c.env.incoming.headers.authorization ? 400 : 401,
    )
  const [named, secret] = [parameterOf(form, 'client_id'), parameterOf(form, 'client_secret')]
  // wire: client_id in the body does not authenticate a client here
  if (onlyBasic && !basic) throw refused('the client must authenticate by HTTP Basic')
  const id = basic ? basic.id : named
  if (id === undefined) throw refused() // wire: error alone, without error_description
  const isSame = named === undefined || named === id
  if (!isClient(id) || !isSame || (basic?.secret || secret) !== undefined)
    throw refused('the client is unknown, or its secret is wrong')
  return id
}

interface Basic {
  readonly id: string
  /** Undefined: empty. */
  readonly secret: string | undefined
}

/** Undefined: the request does not use this scheme. */
function basicOf({ env: { incoming } }: RequestContext): Basic | undefined {
  const [, encoded] = /^basic +([\w+/=-]*)$/i.exec(incoming.headers.authorization?.trimEnd() ?? '') ?? []
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, 'base64').toString()
  const colon = text.indexOf(':')
  if (colon < 0) return { id: '', secret: undefined }
  const [id, secret] = [decode(text.slice(0, colon)), decode(text.slice(colon + 1))]
  return { id, secret: secret || undefined }
}

/** Both parts are encoded like the values of a form. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text // names no client
  }
}
