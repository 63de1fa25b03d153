import { CreateTerminatorResult, edgeErrorCode, TerminatorRetryHint } from '@overlay/channel'
import { isAway } from '@overlay/store/postgres'
import type { RouterChannel } from '../channel/router-channel.js'
import { AccessRefused } from '../domain/router-access.js'
import { TerminatorConflict } from './create-terminators.js'

/** How an answer reports whether a terminator was created. */
export interface CreationOutcome {
  readonly result: CreateTerminatorResult
  readonly errorCode: number
  readonly retryHint: TerminatorRetryHint
}

export const created: CreationOutcome = {
  result: CreateTerminatorResult.SUCCESS,
  errorCode: 0,
  retryHint: TerminatorRetryHint.DEFAULT,
}

/** wire: routers of 2.x act on the hint; older ones know the result alone, and get what they always got. */
export const creationFailure = (
  { features }: Pick<RouterChannel, 'features'>,
  err: unknown,
): CreationOutcome =>
  features.isGrouped
    ? hintedFailure(err)
    : { result: resultOf(err), errorCode: 0, retryHint: TerminatorRetryHint.DEFAULT }

function resultOf(err: unknown): CreateTerminatorResult {
  if (err instanceof TerminatorConflict) return CreateTerminatorResult.ID_CONFLICT
  if (isAway(err)) return CreateTerminatorResult.BUSY
  return err instanceof AccessRefused && err.code === edgeErrorCode.invalidSession
    ? CreateTerminatorResult.INVALID_SESSION
    : CreateTerminatorResult.OTHER
}

function hintedFailure(err: unknown): CreationOutcome {
  if (isAway(err))
    return {
      result: CreateTerminatorResult.BUSY,
      errorCode: edgeErrorCode.internal,
      retryHint: TerminatorRetryHint.BUSY,
    }
  const errorCode = err instanceof AccessRefused ? err.code : edgeErrorCode.internal
  return { result: CreateTerminatorResult.OTHER, errorCode, retryHint: hints[errorCode] }
}

type Code = (typeof edgeErrorCode)[keyof typeof edgeErrorCode]

const { DEFAULT, START_OVER, NOT_RETRIABLE } = TerminatorRetryHint

/** DEFAULT: the router tries again, and gives up at the third failure. */
const hints: Readonly<Record<Code, TerminatorRetryHint>> = {
  [edgeErrorCode.internal]: DEFAULT,
  [edgeErrorCode.invalidApiSession]: START_OVER,
  [edgeErrorCode.invalidSession]: START_OVER,
  [edgeErrorCode.wrongSessionType]: START_OVER,
  [edgeErrorCode.invalidEdgeRouter]: START_OVER,
  [edgeErrorCode.encryptionDataMissing]: START_OVER,
  [edgeErrorCode.invalidService]: NOT_RETRIABLE,
  [edgeErrorCode.tunnelingNotEnabled]: NOT_RETRIABLE,
  [edgeErrorCode.invalidTerminator]: NOT_RETRIABLE,
  [edgeErrorCode.invalidPrecedence]: NOT_RETRIABLE,
  [edgeErrorCode.invalidCost]: NOT_RETRIABLE,
}
