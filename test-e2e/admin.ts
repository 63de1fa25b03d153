import { type Client, openClient, type Server } from './client.js'
import { enroll, type Member } from './member.js'

export interface Admin extends Client {
  /** Creates an entity and returns its id. */
  create(kind: string, body: object): Promise<string>
  /** Creates an identity, redeems its enrollment and logs it in. */
  enroll(body: { name: string; roleAttributes?: string[] }): Promise<Member>
}

export async function logInAsAdmin(
  server: Server,
  credentials: { username: string; password: string },
): Promise<Admin> {
  const client = openClient(server, '/edge/management/v1')
  const { token } = await client.request<{ token: string }>(
    'POST',
    '/authenticate?method=password',
    credentials,
  )
  client.use(token)
  const create = async (kind: string, body: object): Promise<string> => {
    const { id } = await client.request<{ id: string }>('POST', `/${kind}`, body)
    return id
  }
  return {
    ...client,
    create,
    async enroll(body) {
      const identity = { type: 'Device', isAdmin: false, enrollment: { ott: true }, ...body }
      const id = await create('identities', identity)
      const { enrollment } = await client.request<{ enrollment: { ott: { token: string } } }>(
        'GET',
        `/identities/${id}`,
      )
      return enroll(server, id, enrollment.ott.token)
    },
  }
}
