import type { Admin } from '../admin.js'
import { type Certificate, openClient, type Server } from '../client.js'
import { keyAndRequest } from '../member.js'

/** What a router has after its enrollment. */
export interface RouterIdentity {
  readonly id: string
  readonly name: string
  readonly client: Certificate
  readonly server: Certificate
  /** Authorities that it trusts. */
  readonly caPem: string
}

const kinds = {
  'edge-routers': 'erott',
  'transit-routers': 'trott',
} as const

/** Creates a router and enrolls it, as routers do. */
export async function enrollRouter(
  admin: Admin,
  server: Server,
  body: { readonly name: string; readonly [member: string]: unknown },
  kind: keyof typeof kinds = 'edge-routers',
): Promise<RouterIdentity> {
  const id = await admin.create(kind, body)
  const { enrollmentToken } = await admin.request<{ enrollmentToken: string }>('GET', `/${kind}/${id}`)
  return redeem(server, { id, name: body.name, token: enrollmentToken }, kinds[kind])
}

/** Redeems the enrollment of a router that exists. */
export async function redeem(
  server: Server,
  { id, name, token }: { readonly id: string; readonly name: string; readonly token: string },
  method: 'erott' | 'trott' = 'erott',
): Promise<RouterIdentity> {
  const names = [
    { type: 'dns' as const, value: 'localhost' },
    { type: 'ip' as const, value: '127.0.0.1' },
  ]
  const [client, listener] = await Promise.all([keyAndRequest(id), keyAndRequest(id, { names })])
  using anonymous = openClient(server, '/edge/client/v1')
  const answer = await anonymous.request<{ cert: string; serverCert: string; ca: string }>(
    'POST',
    `/enroll?method=${method}&token=${token}`,
    { certCsr: client.csr, serverCertCsr: listener.csr },
  )
  return {
    id,
    name,
    client: { key: client.key, cert: answer.cert },
    server: { key: listener.key, cert: answer.serverCert },
    caPem: answer.ca,
  }
}
