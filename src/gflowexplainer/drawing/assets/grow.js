// In the page around frames: each grows with its content. Only frames of drawings are listened to, and only for a number.
window.gflowexplainerFrames ||= addEventListener("message", (event) => {
  const height = Number(event.data?.gflowexplainer);
  for (const frame of document.querySelectorAll(".gflowexplainer > iframe")) {
    if (frame.contentWindow === event.source && height > 0) frame.style.height = `${Math.min(Math.ceil(height), 4000)}px`;
  }
}) ?? true;
