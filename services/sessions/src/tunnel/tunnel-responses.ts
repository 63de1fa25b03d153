import {
  type CreateApiSessionResponse,
  type CreateSessionResponse,
  TerminatorPrecedence,
} from '@overlay/channel'
import { REFRESH_MARGIN_SECONDS } from '../limits.js'
import type { HeldSession } from '../store/session.js'
import type { RouterSession } from './router-sessions.js'

export const apiSessionAnswer = ({
  id,
  token,
  identityId,
  identityName,
  timeoutSeconds,
  hosting,
}: RouterSession): CreateApiSessionResponse => ({
  sessionId: id,
  token,
  refreshIntervalSeconds: Math.max(timeoutSeconds - REFRESH_MARGIN_SECONDS, 1),
  identityId,
  identityName,
  defaultHostingPrecedence: precedenceNamed(hosting.defaultHostingPrecedence),
  defaultHostingCost: hosting.defaultHostingCost,
  appDataJson: Object.keys(hosting.appData).length > 0 ? JSON.stringify(hosting.appData) : '',
  servicePrecedences: new Map(
    Object.entries(hosting.serviceHostingPrecedences).map(([id, name]) => [id, precedenceNamed(name)]),
  ),
  serviceCosts: new Map(Object.entries(hosting.serviceHostingCosts)),
})

export const sessionAnswer = ({ id, token }: HeldSession): CreateSessionResponse => ({ sessionId: id, token })

const precedences: Readonly<Record<string, TerminatorPrecedence>> = {
  required: TerminatorPrecedence.REQUIRED,
  failed: TerminatorPrecedence.FAILED,
}

const precedenceNamed = (name: string): TerminatorPrecedence =>
  precedences[name] ?? TerminatorPrecedence.DEFAULT
