"use strict";
// How much two pictures differ, in squares of 16 pixels: fonts differ between machines, layout and colours must not.
addEventListener("load", () => {
  const SQUARE = 16;
  const squares = image => {
    const [width, height] = [image.naturalWidth, image.naturalHeight];
    const canvas = new OffscreenCanvas(Math.floor(width / SQUARE), Math.floor(height / SQUARE));
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return { width, height, data: context.getImageData(0, 0, canvas.width, canvas.height).data };
  };
  const [one, other] = [...document.images].map(squares);
  let [sum, far, count] = [0, 0, 0];
  const colours = new Set();
  for (let at = 0; at < Math.min(one.data.length, other.data.length); at += 4) {
    const difference = [0, 1, 2].map(c => Math.abs(one.data[at + c] - other.data[at + c])).reduce((a, b) => a + b) / 3;
    sum += difference;
    colours.add(other.data.slice(at, at + 3).join());
    far += difference > 40;
    count++;
  }
  const out = document.createElement("pre");
  out.id = "probe-result";
  out.textContent = JSON.stringify({ same_size: one.width === other.width && one.height === other.height,
    mean: sum / count, far: far / count, colours: colours.size });
  document.body.append(out);
});
