/** `npm run test:release` runs the tests that take longest: of all versions of the SDKs, and of the commit before this one. */
export const isRelease = process.env.OVERLAY_TEST_RELEASE === 'yes'
