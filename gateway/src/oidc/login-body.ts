import type { JsonSchema } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import { login } from '../api/authenticate.js'
import { parseJson } from '../http/body.js'
import type { RequestContext } from '../http/exchange.js'
import { contentTypeOf, hasBody } from '../http/negotiate.js'
import { JSON_TYPE } from '../http/send.js'
import { check } from '../http/validate.js'
import { FORM_TYPE, formOf, loginIdOf, queryParametersOf } from './requests.js'

/** The types of the bodies of login steps. */
export const loginTypes = [FORM_TYPE, JSON_TYPE]

/** The body of a login step, whatever its type. */
export interface LoginBody {
  /** Empty: it names no login. */
  readonly id: string
  readonly username: string
  readonly password: string
  readonly code: string
  /** An external token, from the page. */
  readonly token: string
  readonly configTypes: readonly string[]
  readonly envInfo: object | undefined
  readonly sdkInfo: object | undefined
}

const word = { type: 'string' }
const { properties } = login.schema as { properties: Readonly<Record<string, object>> }
/** Lengths of names and passwords are no matter of form here: a wrong one is a failed login. */
const schema: JsonSchema = {
  title: 'login',
  type: 'object',
  properties: { ...properties, username: word, password: word, id: word, code: word, token: word },
}

/** @throws Fault if the body does not have the form of a login step */
export function loginBodyOf(c: RequestContext, bytes: Buffer): LoginBody {
  const value = sentValue(c, bytes)
  const { value: checked, refusal } = check(schema, value, bytes.length)
  if (refusal) throw refusal
  const { username = '', password = '', code = '', token = '', ...rest } = checked as Partial<LoginBody>
  const query = queryParametersOf(c)
  return {
    id: loginIdOf(rest.id || query.get('id') || query.get('authRequestID')),
    username,
    password,
    code,
    token,
    configTypes: rest.configTypes ?? [],
    envInfo: rest.envInfo,
    sdkInfo: rest.sdkInfo,
  }
}

function sentValue(c: RequestContext, bytes: Buffer): unknown {
  if (!hasBody(c.env.incoming) || bytes.length === 0) return {}
  if (contentTypeOf(c.env.incoming) !== JSON_TYPE) return formValue(formOf(c, bytes))
  const value = parseJson(bytes)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Fault('COULD_NOT_PARSE_BODY', 'the body is not a JSON object')
  return value
}

const environment = ['arch', 'os', 'osRelease', 'osVersion', 'domain', 'hostname']
const sdk = ['appId', 'appVersion', 'branch', 'revision', 'type', 'version']

function formValue(form: URLSearchParams): object {
  const members = ['id', 'username', 'password', 'code', 'token'].flatMap((name) => {
    const value = form.get(name)
    return value === null ? [] : [[name, value]]
  })
  return {
    ...Object.fromEntries(members),
    configTypes: form.getAll('configTypes'),
    envInfo: info(form, 'env', environment),
    sdkInfo: info(form, 'sdk', sdk),
  }
}

/** wire: the members of an object, each in a field of its own: `envOsRelease`. */
function info(form: URLSearchParams, prefix: string, names: readonly string[]): object | undefined {
  const members = names.flatMap((name) => {
    const field = prefix + name.charAt(0).toUpperCase() + name.slice(1)
    // differs: SDKs send sdkAppID, which the original does not read
    const value = form.get(field) ?? form.get(field.replace(/Id$/, 'ID'))
    return value === null ? [] : [[name, value]]
  })
  return members.length === 0 ? undefined : Object.fromEntries(members)
}
