import { expect, test } from 'vitest'
import { pathOf } from './paths.js'

test.each([
  ['an API path stays as it is', '/edge/client/v1/services', '/edge/client/v1/services'],
  ['the query is no part of it', '/edge/client/v1/services?limit=1//', '/edge/client/v1/services'],
  ['one trailing slash is tolerated', '/edge/management/v1/version/', '/edge/management/v1/version'],
  ['the root of an API may end in a slash', '/edge/client/v1/', '/edge/client/v1'],
  [
    'repeated slashes count as one',
    '/edge/management/v1//identities//x/enable',
    '/edge/management/v1/identities/x/enable',
  ],
  ['the root is the client API', '/', '/edge/client/v1'],
  ['paths without a prefix are the client API', '/authenticate?method=cert', '/edge/client/v1/authenticate'],
  ['the legacy prefix is the client API', '/edge/v1/version', '/edge/client/v1/version'],
  ['the legacy prefix alone is its root', '/edge/v1', '/edge/client/v1'],
  ['what only looks like the legacy prefix is unknown', '/edge/v12/version', '/edge/v12/version'],
  ['unknown paths below /edge are not touched', '/edge/foo', '/edge/foo'],
  ['nor below /fabric', '/fabric/v1/routers', '/fabric/v1/routers'],
  ['nor below the root of the audit', '/audit/v1//changes/', '/audit/v1/changes'],
  ['paths beside the audit are the client API', '/audit/v2', '/edge/client/v1/audit/v2'],
  [
    'the certificates are well known at the root',
    '/.well-known/est/cacerts',
    '/edge/client/v1/.well-known/est/cacerts',
  ],
  ['nothing else is', '/.well-known/other', '/.well-known/other'],
  ['the provider of OpenID Connect has a root of its own', '/oidc//keys/', '/oidc/keys'],
  ['ids may start with a dot', '/edge/client/v1/services/.Inzu-I1S1', '/edge/client/v1/services/.Inzu-I1S1'],
])('%s', (_rule, target, path) => {
  expect(pathOf(target)).toBe(path)
})
