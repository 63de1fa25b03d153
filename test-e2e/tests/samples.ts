import type { Admin } from '../admin.js'
import { newAuthority } from '../authority.js'

const externalIdClaim = {
  location: 'COMMON_NAME',
  matcher: 'PREFIX',
  matcherCriteria: 'dev-',
  parser: 'SPLIT',
  parserCriteria: '.',
  index: 1,
}

/** The smallest body of a create of each kind, under any name. */
export const samples: Readonly<Record<string, (admin: Admin, name: string) => Promise<object>>> = {
  'auth-policies': async (_, name) => ({
    name,
    primary: {
      cert: { allowed: true, allowExpiredCerts: true },
      extJwt: { allowed: true, allowedSigners: [] },
      updb: {
        allowed: true,
        minPasswordLength: 5,
        requireSpecialChar: false,
        requireNumberChar: false,
        requireMixedCase: false,
        maxAttempts: 0,
        lockoutDurationMinutes: 0,
      },
    },
    secondary: { requireTotp: false },
  }),
  authenticators: async (admin, name) => ({
    method: 'updb',
    identityId: await identityFor(admin, name),
    username: name,
    password: 'correct horse',
  }),
  cas: async (_, name) => ({
    name,
    certPem: (await newAuthority(name)).cert,
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: true,
    isOttCaEnrollmentEnabled: true,
    identityRoles: ['b', 'a'],
    identityNameFormat: '[commonName]',
    externalIdClaim,
  }),
  'config-types': async (_, name) => ({ name, schema: { type: 'object' } }),
  configs: async (_, name) => ({
    name,
    configTypeId: 'host.v2',
    data: { terminators: [{ protocol: 'tcp', address: 'localhost', port: 80 }] },
  }),
  'edge-router-policies': async (_, name) => ({ name, semantic: 'AnyOf', identityRoles: ['#all'] }),
  'edge-routers': async (_, name) => ({ name, roleAttributes: ['b', 'a'] }),
  enrollments: async (admin, name) => ({
    method: 'ott',
    identityId: await identityFor(admin, name),
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  }),
  'external-jwt-signers': async (_, name) => ({
    name,
    enabled: true,
    issuer: `https://${name}.example`,
    audience: 'network',
    certPem: (await newAuthority(name)).cert,
    scopes: ['b', 'a'],
  }),
  identities: async (_, name) => ({ name, type: 'Device', isAdmin: false, roleAttributes: ['b', 'a'] }),
  'posture-checks': async (_, name) => ({ name, typeId: 'DOMAIN', domains: ['b.example', 'a.example'] }),
  'service-edge-router-policies': async (_, name) => ({ name, semantic: 'AnyOf', serviceRoles: ['#all'] }),
  'service-policies': async (_, name) => ({ name, type: 'Bind', semantic: 'AllOf', serviceRoles: ['#a'] }),
  terminators: async (admin, name) => ({
    service: await admin.create('services', { name: `${name}-${Date.now()}`, encryptionRequired: true }),
    router: await admin.create('transit-routers', { name: `${name}-${Date.now()}` }),
    binding: 'transport',
    address: 'tcp:localhost:80',
  }),
  'transit-routers': async (_, name) => ({ name, cost: 2, noTraversal: true }),
  services: async (_, name) => ({ name, encryptionRequired: true, maxIdleTimeMillis: 5 }),
}

const identityFor = (admin: Admin, name: string): Promise<string> =>
  admin.create('identities', { name: `${name}-${Date.now()}`, type: 'Device', isAdmin: false })
