// Turns pointer events on a picture into taps and swipes in fractions of the picture.

const SLOP = 6;

/** Limits a number to the picture and to a precision that no screen exceeds. */
export const fraction = value => Math.round(Math.min(1, Math.max(0, value)) * 1e5) / 1e5;

/**
 * The part of an element that shows the picture. The element may be larger than the picture, as with `object-fit: contain`.
 * Fractional: at most sizes and pixel ratios the borders lie between CSS pixels.
 */
function pictureRect({left, top, width, height}, naturalWidth, naturalHeight) {
  if (!(naturalWidth > 0) || !(naturalHeight > 0)) return {left, top, width, height};
  const scale = Math.min(width / naturalWidth, height / naturalHeight);
  const [shownWidth, shownHeight] = [naturalWidth * scale, naturalHeight * scale];
  return {left: left + (width - shownWidth) / 2, top: top + (height - shownHeight) / 2, width: shownWidth, height: shownHeight};
}

/** The place of a pointer in a picture; null outside of it. */
function pointIn(rect, x, y) {
  const point = {x: (x - rect.left) / rect.width, y: (y - rect.top) / rect.height};
  return point.x < 0 || point.y < 0 || point.x > 1 || point.y > 1 ? null : {x: fraction(point.x), y: fraction(point.y)};
}

/** Calls `tap(point)` and `swipe(from, to, milliseconds)`. A swipe that leaves the picture ends at its border. */
export function gesture(surface, image, {isEnabled, tap, swipe}) {
  let start = null;
  const rect = () => pictureRect(image.getBoundingClientRect(), image.naturalWidth, image.naturalHeight);
  surface.addEventListener('pointerdown', event => {
    if (event.button !== 0 || !event.isPrimary || !isEnabled()) return;
    const point = pointIn(rect(), event.clientX, event.clientY);
    if (!point) return;
    start = {point, x: event.clientX, y: event.clientY, at: event.timeStamp, pointer: event.pointerId};
    surface.setPointerCapture(event.pointerId);
  });
  surface.addEventListener('pointerup', event => {
    if (!start || event.pointerId !== start.pointer) return;
    const {point, x, y, at} = start;
    start = null;
    if (Math.hypot(event.clientX - x, event.clientY - y) < SLOP) return tap(point);
    const shown = rect();
    swipe(point, {x: fraction((event.clientX - shown.left) / shown.width), y: fraction((event.clientY - shown.top) / shown.height)},
      Math.round(Math.min(3000, Math.max(80, event.timeStamp - at))));
  });
  surface.addEventListener('pointercancel', () => { start = null; });
}
