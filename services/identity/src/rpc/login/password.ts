import { Fault } from '@overlay/rpc'
import { countFailure, forgetFailures } from '../../store/attempts.js'
import { lockOut } from '../../store/shut.js'
import { subjectByUsername } from '../../store/subjects.js'
import { about, type Step } from './login.js'
import { identityIsEnabled, policyAllows, subjectIsKnown } from './steps.js'

const nameAndPasswordAreGiven: Step = ({ username, password }) => {
  if (username === '' || password === '')
    throw new Fault('COULD_NOT_VALIDATE', 'username and password are both required')
  return undefined
}

const findByName: Step = async (login) => {
  login.subject = await subjectByUsername(login.history.db, login.username)
  return undefined
}

const comparePassword: Step = async (login) => {
  login.passwordMatches = await login.hashing.matches(login.subject?.password ?? null, login.password)
  return undefined
}

const passwordIsRight: Step = about(async (subject, { passwordMatches, history, context }) => {
  const { authenticatorId, maxAttempts, hasFailed } = subject
  if (passwordMatches) {
    if (hasFailed) await forgetFailures(history.db, authenticatorId)
    return undefined
  }
  // differs: only failures count, for all replicas together
  const failures = await countFailure(history.db, authenticatorId)
  if (maxAttempts > 0 && failures >= maxAttempts) await lockOut(history, context, subject)
  return 'wrong password'
})

/** The order of checks. The password is compared before anything is refused, so that time does not tell names. */
export const password: readonly Step[] = [
  nameAndPasswordAreGiven,
  findByName,
  comparePassword,
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isPasswordAllowed }) => isPasswordAllowed),
  passwordIsRight,
]
