import { randomUUID } from 'node:crypto'

/** wire: routers of 2.x append the number of the try. */
const own = /^([\x21-\x7e]{1,200})\/[0-9a-f-]{36}(?:-\d{1,10})?$/

/** Names the controller id by which the router knows this connection. */
export const newConnectionId = (controllerId: string): string => `${controllerId}/${randomUUID()}`

/**
 * The controller id for a router that connects again. Behind a balancer, another replica may answer now. The router has
 * filed the connection under the id of its first answer, and would drop reports about circuits of any other id.
 */
export const shownControllerId = (formerConnectionId: string, controllerId: string): string =>
  own.exec(formerConnectionId)?.[1] ?? controllerId
