import { Fault } from '@overlay/rpc'
import { subjectByUsername } from '../../store/subjects.js'
import { noteAttempt } from '../attempt.js'
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

const passwordIsRight: Step = about(async (subject, { passwordMatches = false, history, context }) => {
  await noteAttempt(history, context, subject, passwordMatches)
  return passwordMatches ? undefined : 'wrong password'
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
